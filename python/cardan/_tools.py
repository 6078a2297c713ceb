"""What the command computes about signals and results."""
from __future__ import annotations

import contextlib
import ctypes as c
import json
import os
import warnings
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _lib
from ._lib import P, S, lib
from ._run import Run, number, numbers, whole

#: a coupling element: a name, the keys of one, or a file
Element = Union[str, Mapping[str, Any], "os.PathLike[str]"]
LOADER = c.CFUNCTYPE(c.c_int, P, S, c.POINTER(P))


class Arena(c.Structure):
    _fields_ = [("ctx", P), ("chunks", P), ("used", c.c_size_t), ("failed", c.c_bool), ("first", c.c_uint32)]


class ElementHead(c.Structure):
    """What crd_element begins with."""
    _fields_ = [("ctx", P), ("arena", Arena), ("name", S), ("label", S), ("step", c.c_double), ("latency", c.c_double),
                ("latency_steps", c.c_int)]


_lib.STRUCTS["crd_arena"] = Arena
_lib.PREFIXES["crd_element"] = ElementHead
_lib.declare({
    "crd_arena_init": (None, [c.POINTER(Arena), P]),
    "crd_arena_clear": (None, [c.POINTER(Arena)]),
    "crd_yaml_to_json": (c.c_int, [P, S, c.c_size_t, _lib.Place, P]),
})


def one_dimension(values: Any, what: str) -> Any:
    """An array of doubles as the library reads it."""
    y = np.ascontiguousarray(numbers(what, values))
    if y.ndim != 1:
        raise _lib.RangeError(f"{what} has {y.ndim} dimensions, expected 1")
    return y


def files_as_json(ctx: _lib.Context, of: Any, what: str) -> Tuple[str, bytes]:
    """A description as the library parses it, and what it is called: a file in YAML, or its keys."""
    if isinstance(of, Mapping):
        try:
            return what, json.dumps(dict(of), default=lambda x: x.tolist()).encode()
        except (TypeError, ValueError, AttributeError) as e:
            raise TypeError(f"the {what} has something that is no number, text, list or mapping: {e}") from None
    path = _lib.encode(of, what)
    try:
        with open(path, "rb") as f:
            data = f.read(1 << 24)
    except OSError as e:
        raise _lib.NotFound(f"{e.strerror or e}", os.fsdecode(path)) from e
    text = ctx.text(lambda out: lib.crd_yaml_to_json(ctx.handle, data, len(data), _lib.Place(path, 1), out))
    return os.fsdecode(path), text.encode("utf-8", "surrogateescape")


class element:
    """An element of the library, while it is used."""

    def __init__(self, ctx: _lib.Context, of: Element) -> None:
        found = P()
        if isinstance(of, str) and not any(x in of for x in "/."):
            ctx.check(lib.crd_element_of_name(ctx.handle, _lib.encode(of, "algorithm"), c.byref(found)))
        else:
            name, text = files_as_json(ctx, of, "element")
            ctx.check(lib.crd_element_parse(ctx.handle, text, len(text), name.encode("utf-8", "surrogateescape"), 1,
                                            c.byref(found)))
        self.handle: Any = found
        head = ElementHead.from_address(found.value or 0)
        self.label, self.step = head.label.decode(), float(head.step)

    def release(self) -> Any:
        handle, self.handle = self.handle, None
        return handle

    def close(self) -> None:
        if self.handle:
            lib.crd_element_destroy(self.release())

    def __enter__(self) -> "element":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@dataclass
class Compensated:
    """What a coupling algorithm would have made of a signal."""
    algorithm: str
    estimate: Any      #: what it says at each macro step
    rms: float         #: of its error
    worst: float       #: largest error
    M: float           #: magnitude, phase and both together, after Sprague and Geers
    P: float
    C: float


def algorithms() -> List[str]:
    """Names of the coupling algorithms, in the recommended order of tables."""
    names = lib.crd_element_algorithms()
    found: List[str] = []
    while names[len(found)]:
        found.append(names[len(found)].decode())
    return found


def compensate(signal: Any, step: float, latency: float = 0.0, algorithms: Optional[Sequence[Element]] = None, *,
               jitter: float = 0.0, loss: float = 0.0, seed: int = 1) -> Dict[str, Compensated]:
    """What each algorithm would have done to a recorded signal, one sample per macro `step`, `latency` s late. NaN is a sample that
    was never sent.

    >>> import numpy as np
    >>> t = np.arange(0, 5, 0.01)
    >>> found = compensate(np.sin(6 * t), 0.01, 0.05, ["zoh", "auto"])
    >>> found["auto"].rms < found["zoh"].rms
    True

    `algorithms` are names (`cardan.algorithms()`), mappings with the keys of an element (docs/coupling.md) or files of one.
    """
    y = one_dimension(signal, "the signal")
    missing = int(np.isnan(y).sum())
    if missing:
        warnings.warn(f"{missing} of {len(y)} samples are no numbers: they count as never sent", stacklevel=2)
    o = lib.crd_replay_defaults()
    o.step, o.delay = number("step", step), number("latency", latency)
    o.jitter, o.loss, o.seed = number("jitter", jitter), number("loss", loss), whole("seed", seed, 0, (1 << 64) - 1)
    ctx = _lib.Context()
    found: Dict[str, Compensated] = {}
    try:
        for a in algorithms if algorithms is not None else globals()["algorithms"]():
            with element(ctx, a) as e:
                name = a if isinstance(a, str) else e.label
                if name in found:
                    raise _lib.RangeError(f"two algorithms are called '{name}', expected a name for each")
                estimate = np.empty(len(y))
                room = c.create_string_buffer(1 << 16)  # crd_replay, which begins with its score
                ctx.check(lib.crd_coupling_replay(ctx.handle, e.handle, c.byref(o), y.ctypes.data, len(y),
                                                  estimate.ctypes.data, room))
                score = _lib.Score.from_buffer(room)
                m = lib.crd_score_metrics(c.byref(score))
                found[name] = Compensated(name, estimate, m.rms, m.worst, m.M, m.P, m.C)
    finally:
        ctx.close()
    return found


@dataclass
class SignalDifference:
    """How a signal of two results differs."""
    name: str
    differs: bool
    only_in_a: bool
    only_in_b: bool
    first_time: float   #: where it first exceeds the tolerance, NaN
    max_error: float
    max_error_time: float
    rms_error: float
    tolerance: float


class Comparison(List[SignalDifference]):
    """Signals of two results, one by one; true if none differs."""

    def __bool__(self) -> bool:
        return not any(d.differs for d in self)


Result = Union[Run, str, "os.PathLike[str]", Mapping[str, Any]]


class Opened:
    """A result as a table of the library: a run, a file, or a mapping with "t" and arrays."""

    def __init__(self, ctx: _lib.Context, of: Result) -> None:
        self.read: Any = None
        self.keep: List[Any] = [of]
        if isinstance(of, Run):
            self.table = lib.crd_master_table(of._alive() and of._master)
        elif isinstance(of, Mapping):
            self.table = self._of_arrays(of)
        else:
            self.read = c.POINTER(_lib.Table)()
            ctx.check(lib.crd_table_read(ctx.handle, _lib.encode(of, "file"), c.byref(self.read)))
            self.table = self.read

    def _of_arrays(self, of: Mapping[str, Any]) -> Any:
        key = next((k for k in ("t", "time") if k in of), None)
        if key is None:
            raise _lib.NotFound("the mapping has no times, expected 't' or 'time'")
        time = np.ascontiguousarray(numbers(key, of[key]))
        if time.ndim == 1 and not (np.isfinite(time).all() and (np.diff(time) >= 0).all()):
            raise _lib.RangeError(f"{key} goes back or is no number somewhere, expected ascending times")
        names = [k for k in of if k != key]
        columns = (_lib.TableColumn * max(1, len(names)))()
        self.keep += [time, columns]
        for i, name in enumerate(names):
            values = np.ascontiguousarray(numbers(str(name), of[name]))
            if values.shape != time.shape or values.ndim != 1:
                raise _lib.RangeError(f"{name} has the shape {values.shape}, expected that of the times, {time.shape}")
            self.keep.append(values)
            columns[i] = _lib.TableColumn(name=_lib.encode(name, "name"), unit=b"", values=values.ctypes.data,
                                          time=time.ctypes.data, rows=len(time))
        table = _lib.Table(path=b"", rows=len(time), column_count=len(names), time=time.ctypes.data, columns=columns)
        self.keep.append(table)
        return c.pointer(table)

    def close(self) -> None:
        if self.read:
            lib.crd_table_destroy(self.read)


def compare(a: Result, b: Result, *, relative: float = 1e-9, absolute: float = 1e-12) -> Comparison:
    """Which signals of two results differ, where first, by how much. Results are runs, files or mappings of arrays.

    >>> import numpy as np
    >>> t = np.arange(5.0)
    >>> bool(compare({"t": t, "y": t}, {"t": t, "y": t + 1e-15}))
    True
    """
    ctx = _lib.Context()
    opened: List[Opened] = []
    inside = contextlib.ExitStack()
    try:
        for run in [x for i, x in enumerate((a, b)) if isinstance(x, Run) and not (i and x is a)]:
            inside.enter_context(run._inside())  # whose record does not grow meanwhile
        for of in (a, b):
            opened.append(Opened(ctx, of))
        o = lib.crd_compare_defaults()
        o.relative, o.absolute = number("relative", relative), number("absolute", absolute)
        out = c.POINTER(_lib.ComparisonTable)()
        ctx.check(lib.crd_compare(ctx.handle, opened[0].table, opened[1].table, c.byref(o), c.byref(out)))
        try:
            return Comparison(
                SignalDifference(s.name.decode(), s.differs, s.only_in_a, s.only_in_b, s.first_time, s.max_error,
                                 s.max_error_time, s.rms_error, s.tolerance)
                for s in (out.contents.signals[i] for i in range(out.contents.signal_count)))
        finally:
            lib.crd_comparison_destroy(out)
    finally:
        for x in opened:
            x.close()
        inside.close()
        ctx.close()
