"""Python functions and classes as units of a system."""
from __future__ import annotations

import ctypes as c
import pickle
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _lib, _run
from ._optional import Later

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")

Names = Union[Sequence[str], Mapping[str, Any]]
Start = Any  # a float or, of a variable with several elements, an array
_FLOAT64, _INPUT, _OUTPUT, _PARAMETER, _CONTINUOUS, _TUNABLE = 0, 1, 2, 3, 0, 2
_OK, _ERROR = 0, 5


def _start(name: str, value: Any) -> Start:
    if isinstance(value, (int, float)):
        return float(value)
    array = _run.numbers(name, value)
    if array.ndim > 1 or not array.size:
        raise ValueError(f"{name} has the shape {array.shape}, expected a number or an array of one dimension")
    return array if array.ndim else float(array)


def _starts(names: Optional[Names], what: str) -> Dict[str, Start]:
    if names is None:
        return {}
    if isinstance(names, str):
        names = [names]
    pairs = names.items() if isinstance(names, Mapping) else [(n, 0.0) for n in names]
    found: Dict[str, Start] = {}
    for name, start in pairs:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"{what}: {name!r} is no name of a variable")
        found[name] = _start(name, start)
    return found


class Unit:
    """A description of a unit in Python; `System.add(name, unit)` makes an instance for each run."""

    def __init__(self, code: Callable[..., Any], inputs: Optional[Names], outputs: Optional[Names],
                 parameters: Optional[Mapping[str, Any]], feedthrough: Optional[bool]) -> None:
        self.code = code
        self.is_class = isinstance(code, type)
        self.name = str(getattr(code, "__name__", type(code).__name__))
        self.__doc__ = code.__doc__
        self.takes_time = False
        if not self.is_class:
            inputs, parameters = self._read_signature(inputs, parameters)
        self.inputs = _starts(inputs, "inputs")
        self.outputs = _starts(outputs if outputs is not None else ["y"], "outputs")
        self.parameters = _starts(parameters, "parameters")
        every = [*self.inputs, *self.outputs, *self.parameters]
        twice = {n for n in every if every.count(n) > 1}
        if twice:
            raise ValueError(f"unit {self.name}: {sorted(twice)[0]!r} is two variables at once")
        if self.is_class and not callable(getattr(code, "step", None)):
            raise TypeError(f"unit {self.name}: the class has no method step(self, t, h)")
        has_outputs = self.is_class and callable(getattr(code, "outputs", None))
        self.feedthrough = (has_outputs or not self.is_class) if feedthrough is None else feedthrough

    def _read_signature(self, inputs: Optional[Names], parameters: Optional[Mapping[str, Any]]) -> Any:
        import inspect
        found, tunable = {}, dict(parameters or {})
        for i, p in enumerate(inspect.signature(self.code).parameters.values()):
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"unit {self.name}: *{p.name} cannot be a variable")
            if i == 0 and p.name == "t":
                self.takes_time = True
            elif p.kind == p.KEYWORD_ONLY:
                tunable.setdefault(p.name, 0.0 if p.default is p.empty else p.default)
            else:
                found[p.name] = 0.0 if p.default is p.empty else p.default
        return (inputs if inputs is not None else found), tunable

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.code(*arguments, **named)


def unit(code: Optional[Callable[..., Any]] = None, *, inputs: Optional[Names] = None,
         outputs: Optional[Names] = None, parameters: Optional[Mapping[str, Any]] = None,
         feedthrough: Optional[bool] = None) -> Any:
    """A function or a class as a unit.

    A function says what its outputs are, from its inputs; arguments are inputs, those behind `*` parameters, and a
    first one called `t` is the time:

    >>> @unit(outputs=["torque"])
    ... def spring(angle, *, stiffness=2.0):
    ...     return -stiffness * angle

    A class has states. Its variables are attributes of the instance; `step(t, h)` advances from t to t + h,
    `initialize(t)` and `outputs(t)` are there if they are needed:

    >>> @unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})
    ... class Lag:
    ...     def initialize(self, t):
    ...         self.y = 0.0
    ...     def step(self, t, h):
    ...         self.y += h * (self.u - self.y) / self.T

    A variable whose start value is an array has as many elements: `outputs={"y": np.zeros(3)}`, `def f(u=np.zeros(3))`.

    With `outputs`, or for a function, outputs are taken to follow inputs at once, unless `feedthrough` is False.
    What the instance has besides its variables is saved with the run by pickle.
    """
    def make(f: Callable[..., Any]) -> Unit:
        return Unit(f, inputs, outputs, parameters, feedthrough)
    return make(code) if code is not None else make


class Instance:
    """One instance of a unit in one run: a model for the library, whose variables are doubles in its memory."""

    def __init__(self, of: Unit, failed: Callable[[BaseException, str], None]) -> None:
        self.of = of
        self.failed = failed
        self.names: List[str] = [*of.inputs, *of.parameters, *of.outputs]
        self.rows = (_lib.ModelVariable * max(1, len(self.names)))()
        starts = {**of.inputs, **of.parameters, **of.outputs}
        self.places: List[Any] = []  # index of a number, slice of an array
        self.arrays = any(not isinstance(starts[n], float) for n in self.names)
        doubles, self.kept = 0, []
        for i, name in enumerate(self.names):
            row, start = self.rows[i], starts[name]
            row.name = name.encode()
            row.type = _FLOAT64
            row.causality = _INPUT if name in of.inputs else _PARAMETER if name in of.parameters else _OUTPUT
            row.variability = _TUNABLE if name in of.parameters else _CONTINUOUS
            row.offset = 8 * doubles
            row.depends = None if of.feedthrough else b""
            if not isinstance(start, float):
                self.kept.append(start)
                row.size, row.starts = len(start), start.ctypes.data
                self.places.append(slice(doubles, doubles + len(start)))
            else:
                row.start = start
                self.places.append(doubles)
            doubles += 1 if isinstance(start, float) else len(start)
        self.doubles = max(1, doubles)
        self.fast: Any = None
        quick = not of.is_class and not self.arrays
        if _lib.fast:
            for row in self.rows:
                row.offset += 8  # behind what they belong to
        self.object: Any = None
        self.pickled = b""
        self.unsaved: Optional[Exception] = None  # why the object cannot be pickled
        self.unit = of.name  # what the system calls it
        self.at = 0
        self.view: Any = None
        self.broken = False
        does = (self._initialize, self._outputs, self._step, self._outside, self._save, self._restore)
        calls: Sequence[Any] = does
        self.model = _lib.Model(
            name=of.name.encode() if of.name.isascii() else b"unit", description=b"a unit in Python",
            size=8 * self.doubles, variables=self.rows, variable_count=len(self.names), default_step=0.01, default_stop=1.0)
        if _lib.fast:
            self.fast = _lib.fast.Unit(*does, self._fail) if not quick else _lib.fast.Function(
                of.code, tuple(of.parameters), self._take_result, len(of.inputs), len(of.parameters), len(of.outputs),
                of.takes_time)
            self.model.user, self.model.kept = id(self.fast), 8
            self.model.size += 8
            calls = _lib.fast_calls[:3] if quick else _lib.fast_calls[3:]
        kinds = (_lib.INITIALIZE, _lib.OUTPUTS, _lib.STEP, _lib.OUTSIDE, _lib.SAVE, _lib.RESTORE)
        for name, kind, call in zip(("initialize", "outputs", "step", "outside", "save", "restore")[:6 if of.is_class else 3],
                                    kinds, calls):
            setattr(self.model, name, kind(call))
        self.given = len(of.inputs) + len(of.parameters)
        self.input_count = len(of.inputs)
        self.parameter_names = list(of.parameters)

    # Variables stand in the library's memory: inputs, parameters, outputs.
    def _look(self, at: int) -> None:
        if at != self.at:
            self.at = at
            self.view = (c.c_double * self.doubles).from_address(at)
            if self.arrays:
                self.view = np.ctypeslib.as_array(self.view)

    def _fail(self, e: BaseException) -> int:
        self.broken = True
        self.failed(e, self.unit)
        return _ERROR

    def _value(self, i: int) -> Any:
        """Of a variable: a float, or an array of its own."""
        value = self.view[self.places[i]]
        if not self.arrays:
            return value
        return float(value) if not np.ndim(value) else value.copy()

    def _set(self, i: int, value: Any) -> None:
        place = self.places[i]
        if isinstance(place, slice):
            value = _run.numbers(f"unit {self.of.name}: {self.names[i]}", value)
            if value.shape != (place.stop - place.start,):
                raise ValueError(f"unit {self.of.name}: {self.names[i]} has the shape {value.shape}, expected "
                                 f"({place.stop - place.start},)")
        try:
            self.view[place] = value
        except TypeError:
            raise TypeError(f"unit {self.of.name}: {self.names[i]} is {type(value).__name__}, expected a number") from None

    def _take(self) -> None:
        for i in range(self.given):
            setattr(self.object, self.names[i], self._value(i))

    def _give(self) -> None:
        for i in range(self.given, len(self.names)):
            self._set(i, getattr(self.object, self.names[i]))

    def _initialize(self, at: int, _host: int, t: float) -> int:
        try:
            self._look(at)
            if self.of.is_class:
                self.object = self.of.code()
                for i in range(self.given, len(self.names)):
                    self.object.__dict__.setdefault(self.names[i], self._value(i))
                self._take()
                begin = getattr(self.object, "initialize", None)
                if begin is not None:
                    begin(t)
                self._give()
            return _OK
        except BaseException as e:
            return self._fail(e)

    def _outputs(self, at: int, t: float) -> None:
        try:
            self._look(at)
            if not self.of.is_class:
                self._call(t)
            elif self.of.feedthrough and self.object is not None:
                self._take()
                out = getattr(self.object, "outputs", None)
                if out is not None:
                    out(t)
                    self._give()
        except BaseException as e:
            self._fail(e)

    def _call(self, t: float) -> None:
        values = [self._value(i) for i in range(self.given)]
        arguments = [t, *values[:self.input_count]] if self.of.takes_time else values[:self.input_count]
        self._put(self.of.code(*arguments, **dict(zip(self.parameter_names, values[self.input_count:]))))

    def _take_result(self, at: int, y: Any, error: Optional[BaseException]) -> bool:
        """What a function gave if it is not one float. True: the unit has failed."""
        try:
            if error is not None:
                raise error
            self._look(at)
            self._put(y)
        except BaseException as e:
            self._fail(e)
        return self.broken

    def _put(self, y: Any) -> None:
        count = len(self.names) - self.given
        single = (dict,) if count == 1 and isinstance(self.places[-1], slice) else (tuple, list, dict)
        if count == 1 and not isinstance(y, single):
            self._set(self.given, y)
            return
        if isinstance(y, dict):
            other = sorted(map(str, set(y).symmetric_difference(self.of.outputs)))
            if other:
                raise ValueError(f"unit {self.of.name} gave {'no ' if other[0] not in y else ''}'{other[0]}', expected "
                                 + ", ".join(self.of.outputs))
            y = [y[name] for name in self.of.outputs]
        elif isinstance(y, (set, frozenset)) or not hasattr(y, "__iter__"):
            raise TypeError(f"unit {self.of.name} gave {type(y).__name__}, expected {count} values: "
                            + ", ".join(self.of.outputs))
        values = list(y)
        if len(values) != count:
            raise ValueError(f"unit {self.of.name} gave {len(values)} values, expected {count}: "
                             + ", ".join(self.of.outputs))
        for i, value in enumerate(values):
            self._set(self.given + i, value)

    def _step(self, at: int, _host: int, t: float, h: float, _reached: Any) -> int:
        try:
            if self.broken:
                return _ERROR
            if self.of.is_class:
                self._look(at)
                self._take()
                self.object.step(t, h)
                self._give()
            return _OK
        except BaseException as e:
            return self._fail(e)

    # What the object has besides its variables.
    def _outside(self, _at: int) -> int:
        self.pickled, self.unsaved = b"", None
        try:
            self.pickled = pickle.dumps(self.object.__dict__ if self.object is not None else {}, protocol=4)
        except Exception as e:  # a lock, a file: the run goes on, and who saves it is told
            self.unsaved = e
        except BaseException as e:
            self._fail(e)
        return len(self.pickled)

    def _save(self, _at: int, to: int) -> None:
        c.memmove(to, self.pickled, len(self.pickled))

    def _restore(self, at: int, _host: int, state: int, size: int) -> int:
        try:
            self._look(at)
            if self.object is None:
                self.object = self.of.code()
            kept = pickle.loads(c.string_at(state, size))
            self.object.__dict__.clear()
            self.object.__dict__.update(kept)
            self.broken = False
            return _OK
        except BaseException as e:
            return self._fail(e)
