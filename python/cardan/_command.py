"""The command `cardan`, for what it alone can do: pages, reports, papers."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Sequence

from . import _lib

_STATUS = {2: -2, 3: -12}


def command() -> str:
    """The command of the package, beside a source tree that of its build, else that on the path."""
    here = Path(__file__).resolve().parent
    library = os.environ.get("CARDAN_LIBRARY")
    places = [here / "_lib" / "cardan", here.parents[1] / "build" / "cardan"]
    if library:
        places.insert(0, Path(library).with_name("cardan"))
    for place in places:
        if place.is_file():
            return str(place)
    found = shutil.which("cardan")
    if not found:
        raise _lib.NotFound("the command 'cardan' was found neither in the package nor on the path")
    return found


def ask(*arguments: str, fine: Sequence[int] = (0,)) -> Any:
    """The document that the command prints with --json."""
    done = subprocess.run([command(), *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in fine:
        lines = [x for x in done.stderr.splitlines() if x.startswith("cardan: ")]
        text = lines[0][8:] if lines else done.stderr.strip() or f"cardan {arguments[0]} ended with {done.returncode}"
        raise _lib.failure(_STATUS.get(done.returncode, -9), text)
    return json.loads(done.stdout)
