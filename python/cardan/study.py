"""Studies: many runs of one system (docs/how-to/study.md), made on this machine or by the workers of Dask, Ray or any pool.

>>> import cardan.study, os, tempfile
>>> folder = tempfile.mkdtemp()
>>> with open(os.path.join(folder, "push.yaml"), "w") as f:
...     _ = f.write("cardan: 1\\nunits: { push: { signal: { shape: sine, amplitude: 1, frequency: 2 Hz } } }\\n"
...                 "run: { step: 1 ms, stop: 0.5 s }\\n")
>>> with open(os.path.join(folder, "sweep.yaml"), "w") as f:
...     _ = f.write("study: 1\\nsystem: push.yaml\\nvary: { amplitude: [1, 2, 4] }\\n"
...                 "change: { units: { push: { signal: { shape: sine, frequency: 2 Hz, amplitude: $amplitude } } } }\\n"
...                 "keep: { peak: max push.y }\\n")
>>> found = cardan.study.run(os.path.join(folder, "sweep.yaml"))
>>> found["amplitude"].tolist(), found["peak"].tolist()
([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
"""
from __future__ import annotations

import math
import os
import queue
import shlex
import socket
import sqlite3
import subprocess
import tempfile
import time as clock
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union
from urllib.parse import quote

import numpy as np

from . import _lib, _optional, _show
from ._command import Asked, ask, command

File = Union[str, "os.PathLike[str]"]
_STATES = ("open", "claimed", "done", "limit", "failed", "diverged", "crashed", "hung")
_TRIES = 3  #: of a chunk without a single result


def _name(path: File) -> str:
    name = os.fsdecode(_lib.encode(path, "study"))
    return "./" + name if name.startswith("-") else name


class Picture:
    """A drawing of runs, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg   #: its text

    def write(self, path: File) -> None:
        """Into a file, as SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


class Study:
    """A study that was begun: its runs as columns, in the order of their numbers. A file of one, or its description.

    `study["peak"]` is an array with a value for each run: NaN where it came to none. Beside factors and what is kept there are
    "run", "state" (2 done, 3 limit, 4 failed, 5 diverged, 6 crashed, 7 hung; 0 and 1: not made yet), "seconds" and "reason".
    """

    def __init__(self, file: File, *, database: Optional[File] = None) -> None:
        self._words = [_name(file), *(["--database", _name(database)] if database is not None else [])]
        self._last: Dict[str, Any] = {}
        shown = self._show("--rows", "1")
        self.path: str = os.path.abspath(shown["study"])   #: the SQLite file
        self.title: str = shown["title"]
        self.system: str = shown["system"]
        self.names: List[str] = [x[1] for x in self._select("SELECT * FROM pragma_table_info('runs')")[6:]]
        #: factors, then what is kept
        self.best: Dict[str, Any] = {}   #: of a search (`optimise`): the run with the least, its values, and what else was kept

    def _show(self, *options: str) -> Dict[str, Any]:
        shown: Dict[str, Any] = ask("study", "show", *self._words, *options)
        return shown

    def _select(self, sql: str) -> List[Tuple[Any, ...]]:
        try:
            connection = sqlite3.connect(f"file:{quote(self.path)}?mode=rw", uri=True, timeout=60)
            try:
                return connection.execute(sql).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as e:
            raise _lib.ReadWriteError(str(e), self.path) from e

    def __len__(self) -> int:
        return int(self._select("SELECT count(*) FROM runs")[0][0])

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in ("run", "state", "seconds", "reason")

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or name not in self:
            raise _lib.NotFound(f"there is no column {name!r}: {', '.join(['run', *self.names, 'state', 'seconds', 'reason'])}")
        column = '"' + ("id" if name == "run" else name).replace('"', '""') + '"'
        rows = self._select(f"SELECT {column} FROM runs ORDER BY id")
        if name in ("run", "state"):
            return np.array([x[0] for x in rows], dtype=np.int64)
        if any(isinstance(x[0], str) for x in rows) or name == "reason":
            return np.array([x[0] or "" for x in rows], dtype=object)
        return np.array([math.nan if x[0] is None else x[0] for x in rows], dtype=np.float64)

    @property
    def counts(self) -> Dict[str, int]:
        """How many runs ended how: `done`, `limit`, `failed`, `diverged`, `crashed`, `hung`; `open` are not made yet."""
        found: Dict[str, int] = {state: 0 for state in _STATES}
        found.update({_STATES[k]: n for k, n in self._select("SELECT state, count(*) FROM runs GROUP BY 1") if 0 <= k < 8})
        found["open"] += found.pop("claimed")
        return found

    @property
    def statistics(self) -> Dict[str, Dict[str, float]]:
        """Of each number that is kept: `mean` with its interval of 95 %, `deviation`, quantiles, over all runs that ended."""
        return {x["name"]: {k: v for k, v in x.items() if k != "name"} for x in self._show("--rows", "1").get("statistics", [])}

    @property
    def sensitivity(self) -> List[Dict[str, Any]]:
        """Of the designs morris and saltelli: how much each factor matters for each number, with intervals of 95 %."""
        shown = self._show("--rows", "1")
        return list(shown.get("sobol") or shown.get("morris") or [])

    def rows(self, where: str = "", sort: str = "", most: int = 0) -> List[Dict[str, Any]]:
        """Runs as dictionaries: `rows("peak < 3 AND state = 2", sort="-peak", most=5)`; words as for `cardan study show`."""
        words = [*(["--where", where] if where else []), *([f"--sort={sort}"] if sort else [])]
        return list(self._show(*words, "--rows", str(int(most)))["rows"])

    def to_pandas(self) -> Any:
        """All runs as a DataFrame, its index the number of the run."""
        pandas = _optional.need("pandas", "Study.to_pandas")
        data = {n: self[n] for n in [*self.names, "state", "seconds", "reason"]}
        data["state"] = np.array(_STATES, dtype=object)[data["state"]]
        return pandas.DataFrame(data, index=pandas.Index(self["run"], name="run"))

    def plot(self, *, where: str = "", **pictures: Union[str, Sequence[str]]) -> Picture:
        """`plot(scatter="second.k2,peak", tornado="peak")`: also heat, histogram and convergence, each also a list of them."""
        words = [*(["--where", where] if where else [])]
        for kind, of in pictures.items():
            if kind not in ("scatter", "heat", "histogram", "tornado", "convergence"):
                raise _lib.NotFound(f"{kind!r} is no picture: scatter, heat, histogram, tornado, convergence")
            words += [f"--{kind}={x}" for x in ([of] if isinstance(of, str) else of)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plot.svg")
            ask("study", "plot", *self._words, *words, "-o", path)
            return Picture(Path(path).read_text(encoding="utf-8"))

    def report(self, path: File) -> str:
        """All of it as one HTML file; its name."""
        ask("study", "report", *self._words, "-o", _name(path))
        return _name(path)

    def export(self, path: File, *, run: Optional[int] = None, signals: Sequence[str] = ()) -> str:
        """The rows as CSV or Parquet; with `run` the signals of that run as MF4, CSV or MAT, which is made again and compared."""
        words = [*(["--run", str(int(run))] if run is not None else []), *(x for s in signals for x in ("--variables", s))]
        ask("study", "export", *self._words, *words, "-o", _name(path))
        return _name(path)

    def _repr_html_(self) -> str:
        from html import escape
        counts = ", ".join(f"{n} {k}" for k, n in self.counts.items() if n)
        rows = self.rows(most=10)
        names = [n for n in (rows[0] if rows else {}) if n not in ("seconds", "reason")]
        body = "".join("<tr>" + "".join(f"<td>{escape(_cell(r.get(n)))}</td>" for n in names) + "</tr>" for r in rows)
        head = "".join(f"<th>{escape(n)}</th>" for n in names)
        return (f"<table><caption>{escape(self.title or self.path)}: {escape(counts)}</caption>"
                f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, float) else "" if x is None else str(x)


# ---- runs ---------------------------------------------------------------------------------------

class _Shown(_show.Bar):
    """How many runs are there, out of the study's own file."""

    def __init__(self, wanted: Optional[bool]) -> None:
        super().__init__(wanted)
        self.before: Optional[int] = None

    def look(self, path: str) -> None:
        if not self.due() or not os.path.exists(path):
            return
        try:
            connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=rw", uri=True, timeout=1)
            try:
                of, done = connection.execute("SELECT count(*), sum(state > 1) FROM runs").fetchone()
            finally:
                connection.close()
        except sqlite3.Error:
            return  # it is being made
        done = int(done or 0)
        before = self.before = done if self.before is None else self.before
        took = clock.monotonic() - self.begun
        rate = (done - before) / took
        left = f", {(of - done) / rate:.0f} s to go" if rate > 0 else ""
        self.tell(done / of if of else None, f"{done:,} of {of:,} runs, {rate:.4g} a second{left}")

    def close(self) -> None:
        if self.told != self.begun:
            self.tell(1.0, f"{clock.monotonic() - self.begun:.1f} s", True)


def _database(study: str, database: Optional[File]) -> str:
    if database is not None:
        return _name(database)
    return study if study.endswith(".study") else os.path.splitext(study)[0] + ".study"


def check(study: File) -> Dict[str, Any]:
    """What a study would be: `runs`, `seconds` here, `bytes` of its file, `keep` with the values of the first run."""
    found: Dict[str, Any] = ask("study", "check", _name(study))
    return found


def _local(what: str, study: File, words: Sequence[str], workers: Optional[int], chunk: Optional[int],
           database: Optional[File], progress: Optional[bool]) -> Dict[str, Any]:
    more = [*words, *(["--workers", str(int(workers))] if workers is not None else []),
            *(["--chunk", str(int(chunk))] if chunk is not None else [])]
    shown = _Shown(progress)
    asked = Asked("study", what, _name(study), *more)
    try:
        while not asked.wait(0.25):
            shown.look(_database(_name(study), database))
        answer: Dict[str, Any] = asked.answer()
        return answer
    finally:
        asked.stop()
        shown.close()


def run(study: File, *, client: Any = None, workers: Optional[int] = None, chunk: Optional[int] = None,
        database: Optional[File] = None, again: Optional[str] = None, yes: bool = False,
        progress: Optional[bool] = None) -> Study:
    """Makes the runs of a study that are not made yet; the study.

    Without a `client` that is done on the cores here, as by `cardan study run`. A client is a `distributed.Client` of Dask, the
    module `ray`, or whatever has `submit` as the pools of concurrent.futures have it (`mpi4py.futures`, too). Its workers need
    the module cardan, of the same version, and the system's files where they are here; results are the same, to the last bit.
    Killed at any moment, the same call goes on.

    `chunk` is how many runs a task makes, `workers` how many processes (of each task: one unless given); `again="failed"` makes
    those again that ended like this; `yes` is needed from a million runs on.
    """
    words = [*(["--database", _name(database)] if database is not None else []), *(["--yes"] if yes else [])]
    first = [*words, *(["--again", again] if again is not None else [])]
    if client is None:
        _local("run", study, first, workers, chunk, database, progress)
    else:
        _Follow(client, _name(study), words, workers, chunk, _Shown(progress)).all(first)
    return Study(study, database=database)


def optimise(study: File, *, workers: Optional[int] = None, database: Optional[File] = None, yes: bool = False,
             progress: Optional[bool] = None) -> Study:
    """Looks for what `optimise:` of the study says, on the cores here; the study, with what was found in `best`."""
    words = [*(["--database", _name(database)] if database is not None else []), *(["--yes"] if yes else [])]
    found = _local("optimise", study, words, workers, None, database, progress)
    made = Study(study, database=database)
    made.best = found["best"]
    return made


# ---- on the workers of a cluster ----------------------------------------------------------------

def _work(chunk: bytes, workers: int) -> Tuple[bytes, str]:
    """On a worker: the rows of the runs of a chunk, as many as came, and why there are no more."""
    try:
        done = subprocess.run([command(), "study", "work", "-", "--quiet", "--workers", str(workers)], input=chunk,
                              capture_output=True, check=False)
    except (_lib.CardanError, OSError) as e:
        return b"", f"{socket.gethostname()}: {e}"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    told = [x[8:] for x in said if x.startswith("cardan: ")] or said[-1:]
    return done.stdout, "" if done.returncode == 0 else (
        f"{socket.gethostname()}: {told[0] if told else f'cardan study work ended with {done.returncode}'}")


class _Client:
    """Tasks of Dask, Ray and pools: a callback when they end, whatever they are."""

    def __init__(self, client: Any) -> None:
        self.client = client
        if isinstance(client, ModuleType) and hasattr(client, "remote"):
            remote = client.remote(max_retries=_TRIES)(_work)
            self.start: Callable[..., Any] = lambda *a: remote.remote(*a).future()
        elif not callable(getattr(client, "submit", None)):
            raise _lib.RangeError(f"{client!r} is no client: expected a distributed.Client, the module ray, or a pool with submit()")
        elif getattr(client, "asynchronous", False):
            raise _lib.RangeError(f"{client!r} is asynchronous: expected distributed.Client(..., asynchronous=False)")
        elif hasattr(client, "scheduler_info"):  # Dask's: the same chunk again is another task
            self.start = lambda *a: client.submit(_work, *a, pure=False)
        else:
            self.start = lambda *a: client.submit(_work, *a)

    @property
    def gone(self) -> str:
        """Why nothing comes any more, "": it may."""
        status = getattr(self.client, "status", "")
        return f"the client's connection is {status}" if status in ("closed", "closing") else ""


class _Follow:
    """Chunks that lie in the study's folder go to the client's workers; what comes back is put there, and merged."""

    def __init__(self, client: Any, study: str, words: Sequence[str], workers: Optional[int], chunk: Optional[int],
                 shown: _Shown) -> None:
        self.client = _Client(client)
        self.study, self.words = study, list(words)
        self.workers = 1 if workers is None else int(workers)
        self.chunk = [] if chunk is None else ["--chunk", str(int(chunk))]
        self.shown = shown
        self.ended: "queue.Queue[Tuple[int, Any]]" = queue.Queue()
        self.tasks: Dict[int, Any] = {}   # of each chunk that is under way
        self.tries: Dict[int, int] = {}   # of each chunk, without a result
        self.given_up: Dict[int, str] = {}
        self.files = 0
        self.merged = clock.monotonic()

    def all(self, first: Sequence[str]) -> None:
        listed = self.list(first)
        try:
            while listed:
                for number, path in listed.items():
                    self.submit(number, path)
                while self.tasks:
                    self.wait(listed)
                if self.given_up:
                    self.merge()
                    number = min(self.given_up)
                    raise _lib.UnitError(f"{len(self.given_up)} chunks came back {_TRIES} times without a result, the first "
                                         f"{listed[number]}: {self.given_up[number]}; the others' results are kept, and the "
                                         "same call tries again")
                listed = self.list(self.words)  # there may be more than fits into the folder at once
        finally:
            for task in self.tasks.values():
                task.cancel()
            self.shown.close()

    def list(self, words: Sequence[str]) -> Dict[int, str]:
        found = ask("study", "run", self.study, "--executor", "list", *words, *self.chunk)
        self.database = found["study"]
        paths = [shlex.split(c["command"])[3] for c in found.get("commands", [])]
        return {int(os.path.basename(p).partition(".")[0]): p for p in paths}

    def submit(self, number: int, path: str) -> None:
        task = self.client.start(Path(path).read_bytes(), self.workers)
        self.tasks[number] = task
        task.add_done_callback(lambda t: self.ended.put((number, t)))

    def wait(self, listed: Dict[int, str]) -> None:
        """For the next task, a second at most."""
        try:
            number, task = self.ended.get(timeout=1)
        except queue.Empty:
            if self.client.gone:
                self.merge()
                raise _lib.ReadWriteError(f"{self.client.gone}; what is done stays, and the same call goes on", self.study) from None
        else:
            if self.tasks.get(number) is task:
                self.take(number, task, listed[number])
        if clock.monotonic() - self.merged > 2:
            self.merge()
        self.shown.look(self.database)

    def take(self, number: int, task: Any, path: str) -> None:
        del self.tasks[number]
        try:
            rows, why = task.result()
        except Exception as e:  # the worker was killed, again and again, or has no such module
            rows, why = b"", f"{type(e).__name__}: {e}"
            if isinstance(e, ImportError) or "No module named" in why:
                why += "; the client's workers need the module cardan of this version"
        if rows:
            self.files += 1
            name = f"{path[:-len('.chunk')]}.python-{os.getpid()}-{clock.time_ns():x}-{self.files}.rows"
            Path(name + ".tmp").write_bytes(rows)
            os.replace(name + ".tmp", name)
        if not why:
            return
        # A chunk that is begun again makes all of its runs again: half of one that came is not lost, but no progress either.
        self.tries[number] = self.tries.get(number, 0) + 1
        if self.tries[number] >= _TRIES:
            self.given_up[number] = why
        else:
            self.submit(number, path)

    def merge(self) -> None:
        ask("study", "merge", self.database)
        self.merged = clock.monotonic()
