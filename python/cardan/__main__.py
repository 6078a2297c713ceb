"""The command: `cardan run ...` or `python -m cardan run ...`."""
from __future__ import annotations

import os
import sys

from ._command import command


def main() -> None:
    """Becomes the command that is inside of the package."""
    program = command()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
