"""Packages that are not needed, or not yet: asked for where they are, named where they are missing."""
from __future__ import annotations

import importlib
from typing import Any


class Later:
    """A module that is imported where it is used first: `import cardan` takes a few milliseconds, NumPy alone 70."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self.name), attribute)


def need(package: str, what: str) -> Any:
    """The package, or a sentence which one to install."""
    try:
        return importlib.import_module(package)
    except ImportError as e:
        name = package.partition(".")[0]
        if e.name is not None and e.name.partition(".")[0] != name:
            raise  # it is there, and something that it needs is not
        raise ImportError(f"{what} needs {name}, which is not installed: pip install {name}", name=name) from None
