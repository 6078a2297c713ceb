"""What the command computes about signals and results."""
from __future__ import annotations

import ctypes as c
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _lib
from ._lib import lib
from ._run import Run


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


def compensate(signal: Any, step: float, latency: float = 0.0, algorithms: Optional[Sequence[Any]] = None, *,
               jitter: float = 0.0, loss: float = 0.0, seed: int = 1) -> Dict[str, Compensated]:
    """What each algorithm would have done to a recorded signal, one sample per macro `step`, `latency` s late.

    >>> import numpy as np
    >>> t = np.arange(0, 5, 0.01)
    >>> found = compensate(np.sin(6 * t), 0.01, 0.05, ["zoh", "auto"])
    >>> found["auto"].rms < found["zoh"].rms
    True

    `algorithms` are names (`cardan.algorithms()`) or mappings with the keys of an element (docs/coupling.md).
    """
    y = np.ascontiguousarray(signal, dtype=np.float64)
    if y.ndim != 1:
        raise _lib.RangeError(f"the signal has {y.ndim} dimensions, expected 1")
    o = lib.crd_replay_defaults()
    o.step, o.delay, o.jitter, o.loss, o.seed = step, latency, jitter, loss, seed
    ctx = _lib.Context()
    found: Dict[str, Compensated] = {}
    try:
        for a in algorithms if algorithms is not None else globals()["algorithms"]():
            element = c.c_void_p()
            if isinstance(a, Mapping):
                name = str(a.get("name") or a.get("algorithm"))
                text = json.dumps(dict(a)).encode()
                ctx.check(lib.crd_element_parse(ctx.handle, text, len(text), b"element", 1, c.byref(element)))
            else:
                name = a
                ctx.check(lib.crd_element_of_name(ctx.handle, _lib.encode(a, "algorithm"), c.byref(element)))
            try:
                estimate = np.empty(len(y))
                room = c.create_string_buffer(1 << 16)  # crd_replay, which begins with its score
                ctx.check(lib.crd_coupling_replay(ctx.handle, element, c.byref(o), y.ctypes.data, len(y),
                                                  estimate.ctypes.data, room))
                score = _lib.Score.from_buffer(room)
                m = lib.crd_score_metrics(c.byref(score))
                found[name] = Compensated(name, estimate, m.rms, m.worst, m.M, m.P, m.C)
            finally:
                lib.crd_element_destroy(element)
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


class _Opened:
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
        time = np.ascontiguousarray(of[key], dtype=np.float64)
        names = [k for k in of if k != key]
        columns = (_lib.TableColumn * max(1, len(names)))()
        self.keep += [time, columns]
        for i, name in enumerate(names):
            values = np.ascontiguousarray(of[name], dtype=np.float64)
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
    opened: List[_Opened] = []
    try:
        for of in (a, b):
            opened.append(_Opened(ctx, of))
        o = lib.crd_compare_defaults()
        o.relative, o.absolute = relative, absolute
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
        ctx.close()
