"""The command `cardan`, for what it alone can do: pages, reports, papers."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _lib, _optional

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


class Asked:
    """The command while it works."""

    def __init__(self, *arguments: str) -> None:
        self.what = arguments[0]
        self.process = subprocess.Popen([command(), *arguments, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.said = ("", "")

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Whether it has ended."""
        try:
            self.said = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """It ends, if it has not, as by Ctrl-C."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate()

    def answer(self, fine: Sequence[int] = (0,)) -> Any:
        """The document that it printed."""
        out, errors = self.said
        code = self.process.returncode
        if code not in fine:
            lines = [x for x in errors.splitlines() if x.startswith("cardan: ")]
            text = lines[0][8:] if lines else errors.strip() or f"cardan {self.what} ended with {code}"
            raise _lib.failure(_STATUS.get(code, -9), text)
        try:
            return json.loads(out)
        except ValueError:
            raise _lib.failure(-9, errors.strip() or f"cardan {self.what} said nothing") from None


def ask(*arguments: str, fine: Sequence[int] = (0,)) -> Any:
    """The document that the command prints with --json."""
    asked = Asked(*arguments)
    try:
        asked.wait()
        return asked.answer(fine)
    finally:
        asked.stop()


class Reproduction(List[Dict[str, Any]]):
    """Rows of a paper: `id`, what was `published`, `ours`, the independent `reference`, `tolerance`, `ok`, `print` ..."""

    def __init__(self, paper: str, rows: Sequence[Dict[str, Any]], counts: Dict[str, int]) -> None:
        super().__init__(rows)
        self.paper = paper
        self.counts = counts   #: how many rows were judged, ok, printed, agree, refuted ...

    @property
    def ok(self) -> bool:
        """Every row that is judged is within its tolerance."""
        return self.counts["ok"] == self.counts["judged"]

    def to_pandas(self) -> Any:
        """The table as a DataFrame."""
        return _optional.need("pandas", "Reproduction.to_pandas").DataFrame(list(self))

    def _repr_html_(self) -> str:
        from html import escape
        keys = ("id", "what", "published", "ours", "reference", "ok", "print")
        shown = [k for k in keys if any(k in row for row in self)]
        head = "".join(f"<th>{k}</th>" for k in shown)
        body = "".join("<tr>" + "".join(f"<td>{escape(str(row.get(k, '')))}</td>" for k in shown) + "</tr>" for row in self)
        return f"<table><caption>{escape(self.paper)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def reproduce(paper: str, only: Union[str, Sequence[str]] = (), *, quick: bool = True) -> Reproduction:
    """The tables and figures of a paper, computed anew, as a table: `cardan.reproduce("baumann2024", "table1.*")`.

    `only` are patterns of row ids. `quick` measures no times and leaves out rows that take very many steps.
    """
    if not isinstance(paper, str) or paper.startswith("-"):
        raise _lib.NotFound(f"{paper!r} is no paper")
    patterns = [only] if isinstance(only, str) else list(only)
    for pattern in patterns:
        _lib.encode(pattern, "only")
    more = [x for pattern in patterns for x in ("--only", pattern)]
    found = ask("reproduce", paper, *more, *(["--quick"] if quick else []), fine=(0, 1))
    return Reproduction(paper, found["rows"], found["counts"])
