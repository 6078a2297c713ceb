"""Runs: advanced, looked at, set back."""
from __future__ import annotations

import contextlib
import ctypes as c
import json
import os
import time as clock
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _lib, _optional
from ._lib import lib

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from . import _show

    from ._system import System
    Array = NDArray[np.float64]
else:
    np, _show = _optional.Later("numpy"), _optional.Later("cardan._show")

_ENDS = ("", "stop time", "unit", "interrupted", "failed", "overrun", "guard")
_SLICE = 0.05  # s between two looks at signals such as Ctrl-C
_NUMBERS = "biuf"  # kinds of NumPy's types


def whole(what: str, number: Any, least: int = 0, most: int = (1 << 62) - 1) -> int:
    """A whole number that was given."""
    if isinstance(number, bool) or not (isinstance(number, int) or isinstance(number, np.integer)):
        raise TypeError(f"{what} is {type(number).__name__}, expected a whole number")
    if not least <= number <= most:
        raise _lib.RangeError(f"{what} is {number}, expected a whole number from {least}"
                              + (f" to {most}" if most < 1 << 61 else ""))
    return int(number)


def number(what: str, value: Any) -> float:
    """A number that was given; the library says which ones make sense."""
    try:
        if isinstance(value, (str, bytes, bytearray)) or getattr(getattr(value, "dtype", None), "kind", "f") not in _NUMBERS:
            raise TypeError
        return float(value)
    except OverflowError:
        raise _lib.RangeError(f"{what} is too large for a number of 64 bits") from None
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {type(value).__name__}, expected a number") from None


def numbers(what: str, values: Any) -> "Array":
    """Numbers that were given, as doubles; what a mask hides is NaN."""
    a = values if isinstance(values, np.ndarray) else np.asarray(values)
    if a.dtype.kind == "O":
        a = np.array([number(what, x) for x in a.ravel()], dtype=float).reshape(a.shape)
    elif a.dtype.kind not in _NUMBERS:
        raise TypeError(f"{what} has elements of type {a.dtype}, expected numbers")
    if isinstance(a, np.ma.MaskedArray):
        a = np.ma.filled(a.astype(float), np.nan)  # type: ignore[no-untyped-call,unused-ignore]
    return np.asarray(a, dtype=np.float64)


class VerdictWarning(UserWarning):
    """A result that its coupling has spoilt."""


class State(_lib.Unique):
    """A saved state of a run, for `Run.restore`. It goes with its run."""
    _run: "Run"
    _handle: c.c_void_p

    def __init__(self) -> None:
        raise TypeError("a State is made by Run.save")

    @staticmethod
    def _of(run: "Run", handle: c.c_void_p) -> "State":
        state = State.__new__(State)
        state._run, state._handle = run, handle
        return state

    @property
    def time(self) -> float:
        """Simulated time, s."""
        with self._run._inside():
            return float(lib.crd_snapshot_time(self._handle))

    @property
    def size(self) -> int:
        """Bytes, without those that FMUs keep themselves."""
        with self._run._inside():
            return int(lib.crd_snapshot_size(self._handle))

    def __del__(self) -> None:
        try:
            self._run._forget(self._handle)
        except Exception:  # it was never made
            pass


class Verdict(Mapping[str, Any]):
    """How a run went: the document `verdict.json` of docs/formats.md as a mapping, with a short text."""

    def __init__(self, document: Dict[str, Any]) -> None:
        self.document = document

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    @property
    def guard(self) -> str:
        """"calm", "off", ... "diverged", "limit"."""
        g = self.document.get("guard")
        return str(g.get("state", "off")) if isinstance(g, dict) else "off"

    @property
    def ok(self) -> bool:
        """No loop diverges by its coupling, no limit was left, nothing has exploded or is mostly error: exit code 0."""
        return not self._trouble

    @property
    def state(self) -> str:
        """"good", "doubtful", "bad", or "unknown" where nothing was watched: the colour of the report, by its rules."""
        d = self.document

        def of(key: str, group: str = "guard") -> Any:
            return (d.get(group) or {}).get(key)

        def from_a_tenth_on(key: str) -> bool:
            return isinstance(d.get(key), (int, float)) and not d[key] < 0.1
        watched, loops = bool(d.get("flows")), of("loops") or 0
        if self.guard in ("diverged", "limit") or d.get("trust") == "spoilt" or d.get("end") in ("failed", "guard"):
            return "bad"
        if (d.get("end") not in ("stop time", "unit", "") or d.get("trust") == "doubtful" or d.get("warnings")
                or self.guard in ("undecided", "warned", "flagged") or of("failed", "iteration") or of("overrun_count", "pace")
                or (watched and d.get("worst_defect") is None)
                or any(map(from_a_tenth_on, ("worst_defect", "worst_energy", "worst_error")))
                or (d.get("error_note") and loops and (d.get("worst_defect") or 0) >= 0.01)
                or not all(x.get("converged", True) for x in d.get("loops") or [])):
            return "doubtful"
        blind = self.guard == "off" or not (watched or d.get("couplings"))
        return "unknown" if loops and blind else "good"

    @property
    def _trouble(self) -> str:
        """Why it is not `ok`, in a sentence."""
        g = self.document.get("guard")
        g = g if isinstance(g, dict) else {}
        if self.guard in ("diverged", "limit"):
            return str(g.get("text") or f"guard: {self.guard}")
        if g.get("exploded"):
            return f"{g.get('text', '')}; it has become a thousand times as large, which passes with guard='warn' only"
        if self.document.get("trust") == "spoilt":
            said = [a for a in self.document.get("advice", []) if "of its RMS" in a]
            return said[0] if said else "by the estimate more than half of the result is error"
        return ""

    def __repr__(self) -> str:
        error = self.document.get("worst_part")
        return (f"<cardan.Verdict {self.state}, guard {self.guard}"
                + (f", estimated error {100 * error:.2g} % of RMS>" if isinstance(error, (int, float)) else ">"))


class _Held:
    """What a run has of the library. Arrays of its record keep it."""

    def __init__(self) -> None:
        self.ctx = _lib.Context()
        self.system: Optional[int] = None
        self.master: Optional[int] = None
        self.instances: List[Any] = []
        self.fast: Any = None
        self.gone = False
        self.process = os.getpid()

    def __del__(self) -> None:
        try:
            if os.getpid() != self.process:
                return  # units, their processes and threads are those of another one
            self.gone = True  # what goes together with it may still ask
            if self.fast:
                self.fast.close()
            if self.master:
                lib.crd_master_destroy(self.master)
            if self.system:
                lib.crd_system_destroy(self.system)
            self.ctx.close()
        except Exception:  # the interpreter ends
            pass


class Run(_lib.Unique):
    """One execution of a system. `System.run` makes a finished one, `System.start` one to be stepped:

    >>> sys = System()
    >>> _ = sys.add("lag", unit(lambda u: 0.5 * u))
    >>> with sys.start(stop=1, step=0.1) as run:
    ...     for t in run.steps():
    ...         run.set("lag.u", t)
    >>> float(run["lag.y"][-1])
    0.45
    """

    def __init__(self, system: "System", options: Mapping[str, Any], snapshots: bool, initialize: bool = True,
                 record: bool = True, resume: Optional[bytes] = None, exchange: bool = False) -> None:
        held = _Held()
        _runs.add(self)
        self._held: Any = held
        self._ctx: Optional[_lib.Context] = held.ctx
        self._master: Optional[int] = None
        self._system: Optional[int] = None
        self._instances: List[Any] = []
        self._gate: Any = _lib.Gate("run")
        self._lost: List[c.c_void_p] = []  # states that went while somebody was inside
        self._error: Optional[BaseException] = None  # of a unit in Python
        self._whose = ""
        self._written: Sequence[Tuple[int, str]] = ()  # where the library reads what
        self._fast: Any = None
        self._handles: Dict[str, Tuple[int, Any, int]] = {}
        self._finished = False
        self._no_start: Optional[_lib.CardanError] = None  # why there is no going back to it
        self._arrays: Dict[str, Any] = {}
        self._places: Dict[str, int] = {}  # of columns
        try:
            self._system, self._instances, self._written = system._make(self._ctx, options, self._unit_failed)
            held.system, held.instances = self._system, self._instances
            if exchange:  # to be linearised
                self._check(lib.crd_master_prefer_exchange(self._ctx.handle, self._system))
            o = _lib.MasterOptions(columns=record, snapshots=snapshots, no_statistics=not record, resume=resume)
            made = c.c_void_p()
            self._check(lib.crd_master_create(self._ctx.handle, self._system, c.byref(o), c.byref(made)))
            self._master = held.master = made.value
            if _lib.fast and type(self) is Run:  # others have methods of their own
                self._quicken()
            if initialize:
                self._check(lib.crd_master_initialize(self._master))
                self._no_start = self._unsaved()
        except BaseException:
            self.close()
            raise

    # ---- failures --------------------------------------------------------------------------------

    def _quicken(self) -> None:
        """The methods that are called most by way of the small module in C; the ones below say what goes wrong."""
        me = weakref.ref(self)

        def alive() -> "Run":
            run = me()
            if run is None:
                raise _lib.StateError("the run is closed")
            run._alive()
            return run

        def at_fault(status: int) -> None:
            if status > 0:  # somebody is inside
                held = _lib.Gate("run")
                with held, held:
                    pass
            run = alive()
            if run._fast is None:  # since whoever calls has taken the method
                with run._inside():
                    raise _lib.StateError("the run is closed")
            run._check(status)

        def advance(steps: Any) -> bool:
            return Run.advance(alive(), steps)

        def get(name: str) -> Any:
            return Run.get(alive(), name)

        def put(name: str, value: Any) -> None:
            Run.set(alive(), name, value)

        self._fast = self._gate = self._held.fast = _lib.fast.Run(self._master, at_fault, advance, get, put, me)
        self.__dict__.update(advance=self._fast.advance, get=self._fast.get, set=self._fast.set)

    def _unit_failed(self, e: BaseException, unit: str) -> None:
        if self._error is None:
            self._error, self._whose = e, unit
        if self._fast:
            self._fast.flag()

    def _alive(self) -> _lib.Context:
        if self._ctx is None or self._held.gone:
            raise _lib.StateError("the run is closed")
        return self._ctx

    def _forked(self) -> None:
        """In a new process, where a finished run can be looked at and the others are somebody else's."""
        self._gate = _lib.Gate("run") if self._finished else _lib.Forked()
        self._leave_fast()

    def _leave_fast(self) -> None:
        if self._fast:
            self._fast.close()
            for name in ("advance", "get", "set"):
                self.__dict__.pop(name, None)
            self._fast = None

    def _inside(self) -> Any:
        """`with self._inside():` nobody else is in the library with this run."""
        self._alive()
        return self._gate

    def _check(self, status: int) -> None:
        ctx = self._alive()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, Exception):
            raise error  # Ctrl-C, exit
        if status < 0:
            said = f": {type(error).__name__}: {error}" if error is not None else ""
            e = _lib.failure(status, ctx.sentence() + said, self._written)
            e.run = self
            raise e from error
        if error is not None:
            failed = _lib.UnitError(f"unit '{self._whose}' failed: {type(error).__name__}: {error}")
            failed.run = self
            raise failed from error

    # ---- time ------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated time, s."""
        if self._fast:
            return float(self._fast.time())
        self._alive()
        return float(lib.crd_master_time(self._master))

    @property
    def ended(self) -> str:
        """Why it ended: "stop time", "unit", "interrupted", "failed", "guard"; "" while it goes on."""
        if self._fast:
            return _ENDS[self._fast.ended()]
        self._alive()
        return _ENDS[lib.crd_master_ended(self._master)]

    def advance(self, steps: int = 1) -> bool:
        """So many macro steps. False: the run has come to its end."""
        left = whole("steps", steps)
        with self._inside():
            some, going = 256, True
            while going:  # in slices, between which Python sees Ctrl-C
                some = min(some, left)
                left -= some
                before = clock.monotonic()
                status = lib.crd_master_advance(self._master, some)
                if status < 0 or self._error is not None:
                    self._check(status)
                going = bool(lib.crd_master_ended(self._master) == 0)
                if not left:
                    break
                some = some * 2 if clock.monotonic() - before < _SLICE else some
            return going

    def steps(self, every: int = 1) -> Iterator[float]:
        """The time before each step, which is made when the loop comes back; finishes the run at the end."""
        advance = self.advance
        now = self._fast.time if self._fast else (lambda: self.time)
        going = not self.ended
        while going:
            yield now()
            going = advance(every)
        self.finish()

    def complete(self, progress: Optional[Callable[[float], None]] = None) -> "Run":
        """To the end. `progress(time)` is called some times a second."""
        chunk = 1
        while not self.ended:
            before = clock.monotonic()
            self.advance(chunk)
            took = clock.monotonic() - before
            chunk = chunk * 2 if took < _SLICE / 2 else max(1, chunk // 2) if took > _SLICE else chunk
            if progress is not None:
                progress(self.time)
        return self.finish()

    def cancel(self) -> None:
        """From any thread: the run ends after the step under way."""
        if self._fast:
            self._fast.cancel()
            return
        self._alive()
        lib.crd_master_cancel(self._master)

    def _interrupted(self) -> None:
        """Ctrl-C between two steps: the run ends where it is, and its units with it."""
        if self._master and not self._finished:
            with self._gate:
                lib.crd_master_cancel(self._master)
                lib.crd_master_advance(self._master, 1)  # which makes none
                self._finished = True
                lib.crd_master_finish(self._master)

    def finish(self) -> "Run":
        """Terminates the units. The record stays. Raises LimitError if the guard has stopped the run."""
        if self._finished:
            return self
        with self._inside():
            self._finished = True
            self._check(lib.crd_master_finish(self._master))
        verdict = self.verdict
        if self.ended == "guard" or not verdict.ok:
            text = verdict._trouble
            if self.ended == "guard":
                e = _lib.LimitError(text or "the guard has stopped the run")
                e.run = self
                raise e
            warnings.warn(VerdictWarning(text), stacklevel=3)
        return self

    # ---- values ----------------------------------------------------------------------------------

    def _handle(self, name: str) -> Tuple[int, Any, int]:
        found = self._handles.get(name)
        if found is None:
            ctx = self._alive()
            index = c.c_int()
            ctx.check(lib.crd_master_find(self._master, _lib.encode(name, "name"), c.byref(index)))
            info = lib.crd_master_handle(self._master, index).contents
            room = (c.c_double * info.count)()
            found = self._handles[name] = (index.value, room, info.count if info.element < 0 else 1)
            if self._fast and found[2] == 1:
                self._fast.know(name, index.value)
        return found

    def get(self, name: str) -> Union[float, "Array"]:
        """The value of a variable now: a float, of an array an array."""
        with self._inside():
            index, room, count = self._handles.get(name) or self._handle(name)
            self._check(lib.crd_master_get(self._master, index, room))
            return room[0] if count == 1 else np.array(room)

    def set(self, name: str, value: Any) -> None:
        """An input that nobody is connected to, or a tunable parameter. Takes effect in the next step."""
        with self._inside():
            index, room, count = self._handles.get(name) or self._handle(name)
            if count == 1:
                room[0] = number(name, value)
            else:
                values = numbers(name, value)
                if values.shape != (count,):
                    raise _lib.RangeError(f"{name} got {values.size} values in the shape {values.shape}, expected {count}")
                room[:] = values.tolist()
            self._check(lib.crd_master_set(self._master, index, room))

    # ---- the record ------------------------------------------------------------------------------

    def _table(self) -> Any:
        return lib.crd_master_table(self._master).contents

    @property
    def names(self) -> List[str]:
        """Names of the recorded signals."""
        with self._inside():
            t = self._table()
            return [t.columns[i].name.decode() for i in range(t.column_count)]

    @property
    def units(self) -> Dict[str, str]:
        """Their physical units."""
        with self._inside():
            t = self._table()
            return {t.columns[i].name.decode(): t.columns[i].unit.decode() for i in range(t.column_count)}

    def _array(self, at: Optional[int], rows: int) -> "Array":
        if not at or not rows:
            return np.full(rows, np.nan) if rows else np.empty(0)
        view = np.asarray(memoryview(_Memory.from_address(at, rows, self._held)).toreadonly())
        return view if self._finished else view.copy()  # the record goes on, or back, and moves

    def __getitem__(self, name: str) -> "Array":
        """A recorded signal, "t" or "time" for its times. Of a finished run without a copy, else as it is now."""
        with self._inside():
            found: Optional["Array"] = self._arrays.get(name)
            if found is not None:
                return found
            t = self._table()
            if name in ("t", "time"):
                found = self._array(t.time, t.rows)
            else:
                column = self._column(t, name)
                found = self._array(column.values, column.rows)
            if self._finished:
                self._arrays[name] = found
            return found

    def _column(self, t: Any, name: str) -> Any:
        if not self._places:
            self._places = {t.columns[i].name.decode(): i for i in range(t.column_count)}
        i = self._places.get(name)
        if i is None:
            raise self._unknown(name)
        return t.columns[i]

    def _unknown(self, name: str) -> _lib.NotFound:
        import difflib
        near = difflib.get_close_matches(str(name), self._places, 1)
        return _lib.NotFound(f"'{name}' is not recorded" + (f", did you mean '{near[0]}'?" if near else ""))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def to_pandas(self) -> Any:
        """The record as a DataFrame over time; NaN where a unit that is recorded at its own times has no row."""
        pandas = _optional.need("pandas", "Run.to_pandas")
        times = {n: self.times(n) for n in self.names}
        if all(t.shape == self["t"].shape for t in times.values()):
            return pandas.DataFrame({n: self[n] for n in times}, index=pandas.Index(self["t"], name="time"))
        return pandas.DataFrame({n: pandas.Series(self[n], index=pandas.Index(t, name="time")) for n, t in times.items()})

    def times(self, name: str) -> "Array":
        """The times of a recorded signal; those of `run["t"]`, unless units are recorded at their own."""
        with self._inside():
            t = self._table()
            column = self._column(t, name)
            if column.time != t.time:
                return self._array(column.time, column.rows)
        return self["t"]

    def to_xarray(self) -> Any:
        """The record as a Dataset over time, with physical units as attributes."""
        return _show.to_xarray(self)

    def plot(self, *names: str, axes: Any = None) -> Any:
        """Signals by matplotlib, those of one physical unit in one of `axes`; all of them without names."""
        return _show.plot(self, names, axes)

    def write(self, path: Union[str, "os.PathLike[str]"]) -> "Run":
        """The record as a file by its ending: .csv, .mf4 or .mat, the latter with description and verdict."""
        _show.write(self, os.fspath(path))
        return self

    def show(self, path: Optional[str] = None, *, browser: bool = True) -> str:
        """The report as one page, opened in a browser. Without a path it goes with the interpreter."""
        return _show.show(self, path, browser)

    def _repr_html_(self) -> str:
        return _show.run_html(self)

    @property
    def verdict(self) -> Verdict:
        """How it went, so far."""
        return Verdict(json.loads(self._text(lib.crd_master_describe_verdict)))

    def _text(self, write: Any) -> str:
        with self._inside():
            return self._alive().text(lambda t: write(self._master, t))

    @property
    def description(self) -> Dict[str, Any]:
        """What runs: files with their hashes, settings, connections (`run.json` of docs/formats.md)."""
        found: Dict[str, Any] = json.loads(self._text(lib.crd_master_describe_run))
        return found

    @property
    def log(self) -> List[Tuple[str, str]]:
        """Warnings so far, as (level, text)."""
        return list(self._alive().lines)

    # ---- going back ------------------------------------------------------------------------------

    @overload
    def save(self) -> State: ...

    @overload
    def save(self, path: Union[str, "os.PathLike[str]"]) -> None: ...

    def save(self, path: Union[str, "os.PathLike[str]", None] = None) -> Optional[State]:
        """The state of the whole run, to go back to; with `path` as a file, for `System.resume` in any process.

        Files are sealed with a key of the user, ~/.config/cardan/state.key or the file $CARDAN_STATE_KEY.
        """
        with self._inside():
            self._sweep()
            if path is not None:
                for unit in self._instances:
                    if unit.of.is_class:
                        unit._outside(0)
                self._refuse(self._unsaved())
                self._check(lib.crd_master_save_file(self._master, _lib.encode(path, "path")))
                return None
            state = c.c_void_p()
            self._check(lib.crd_master_save(self._master, c.byref(state)))
            made = State._of(self, state)
            failed = self._unsaved()
        self._refuse(failed)
        return made

    def _unsaved(self) -> Optional[_lib.CardanError]:
        """Of the state that was just taken: a unit in Python that is not in it."""
        for unit in self._instances:
            if unit.unsaved is not None:
                e = _lib.Unsupported(f"unit '{unit.unit}' cannot be saved: {type(unit.unsaved).__name__}: {unit.unsaved}")
                e.__cause__ = unit.unsaved
                return e
        return None

    @staticmethod
    def _refuse(e: Optional[_lib.CardanError]) -> None:
        if e is not None:
            raise e

    def _forget(self, state: c.c_void_p) -> None:
        """A state has gone, in whatever thread."""
        self._lost.append(state)
        try:
            with self._inside():
                self._sweep()
        except _lib.StateError:
            pass  # when somebody comes next

    def _sweep(self) -> None:
        while self._lost:
            lib.crd_snapshot_destroy(self._lost.pop())

    def restore(self, state: State) -> "Run":
        """Back to a saved state; what follows is, to the last bit, what followed then."""
        self._alive()
        if not isinstance(state, State):
            raise TypeError(f"state is {type(state).__name__}, expected what Run.save gave")
        if state._run is not self:
            raise _lib.StateError("the state was not saved by this run")
        with self._inside():
            self._check(lib.crd_master_restore(self._master, state._handle))
        return self

    def reset(self) -> "Run":
        """Back to the state after the initialisation, without opening anything again."""
        with self._inside():
            self._refuse(self._no_start)
            self._check(lib.crd_master_reset(self._master))
        return self

    @contextlib.contextmanager
    def branch(self) -> Iterator["Run"]:
        """What is done inside is undone at the end: `with run.branch(): ...`."""
        state = self.save()
        try:
            yield self
        finally:
            self.restore(state)

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees everything but what arrays of a finished run need: that goes with them."""
        if self._ctx is None:
            return
        with self._gate if not isinstance(self._gate, _lib.Forked) else contextlib.nullcontext():
            self._leave_fast()
            self._master = self._system = self._ctx = None
            self._instances, self._arrays, self._lost = [], {}, []
            held, self._held = self._held, None
        del held  # which may be the end of units, whose code may ask us

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, *_rest: Any) -> None:
        if kind is None:
            self.finish()
        elif not self._finished and self._master:
            with self._gate:
                self._finished = True
                lib.crd_master_finish(self._master)

    def __repr__(self) -> str:
        if self._ctx is None:
            return "<cardan.Run, closed>"
        return f"<cardan.Run at t = {self.time:g} s, {self.ended or 'going on'}>"


def _after_fork() -> None:
    for run in list(_runs):
        run._forked()


_runs: "weakref.WeakSet[Run]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork)


class _Memory:
    """Doubles of the library as something that NumPy takes, which keeps their owner."""

    @staticmethod
    def from_address(at: int, rows: int, owner: Any) -> Any:
        room: Any = (c.c_double * rows).from_address(at)
        room._owner = owner
        return room
