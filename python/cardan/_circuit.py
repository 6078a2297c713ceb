"""Circuits and digital twins by themselves."""
from __future__ import annotations

import ctypes as c
import math
import os
import time as clock
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _lib, _optional
from ._lib import P, S, STATUS, lib
from ._run import number, whole
from ._tools import Arena, files_as_json, one_dimension

D = c.c_double
Path = Union[str, "os.PathLike[str]"]
_SLICE = 0.05  # s between two looks at signals such as Ctrl-C


class Input(c.Structure):
    _fields_ = [("name", S), ("unit", S), ("start", D), ("part", c.c_int32)]


class Output(c.Structure):
    _fields_ = [("name", S), ("unit", S), ("what", P)]


class Netlist(c.Structure):
    _fields_ = [
        ("ctx", P), ("arena", Arena), ("title", S), ("files", P), ("names", P), ("nodes", c.POINTER(S)),
        ("node_count", c.c_int32), ("parts", P), ("part_count", c.c_int32), ("waves", P), ("expressions", P), ("diodes", P),
        ("switches", P), ("wave_count", c.c_int), ("expression_count", c.c_int), ("diode_count", c.c_int),
        ("switch_count", c.c_int), ("inputs", c.POINTER(Input)), ("outputs", c.POINTER(Output)), ("input_count", c.c_int),
        ("output_count", c.c_int), ("parameters", P), ("parameter_count", c.c_int), ("temperature", D), ("tran_step", D),
        ("tran_stop", D), ("tran_start", D), ("tran_largest", D), ("uic", c.c_bool), ("node_ic", P),
    ]


class NetlistOptions(c.Structure):
    _fields_ = [("defines", P), ("define_count", c.c_int), ("max_parts", c.c_int64), ("flat", P)]


class CircuitOptions(c.Structure):
    _fields_ = [("method", c.c_int), ("start", c.c_int), ("form", c.c_int), ("step", D), ("max_iterations", c.c_int),
                ("tolerance", D), ("fixed_iterations", c.c_bool), ("projection", D), ("no_chains", c.c_bool),
                ("refactor", c.c_int)]


class Control(c.Structure):
    _fields_ = [("relative", D), ("voltage", D), ("current", D), ("smallest", D), ("largest", D)]


class Choice(c.Structure):
    _fields_ = [("method", c.c_int), ("step", D), ("error", D), ("worst", c.c_int), ("steps", c.c_int64)]


class Probe(c.Structure):
    _fields_ = [("kind", c.c_int), ("a", c.c_int32), ("b", c.c_int32), ("name", S), ("unit", S)]


class Probes(c.Structure):
    _fields_ = [("all", c.POINTER(Probe)), ("count", c.c_int), ("left_out", c.c_int)]


class Course(c.Structure):
    _fields_ = [("stop", D), ("control", c.POINTER(Control)), ("most", c.c_int64), ("before", P), ("after", P), ("user", P),
                ("ended", P)]


class Record(c.Structure):
    _fields_ = [("probes", c.POINTER(Probe)), ("probe_count", c.c_int), ("from", D), ("every", c.c_int), ("inputs", P),
                ("input_rows", c.c_int64), ("rows", c.c_int64), ("steps", c.c_int64), ("capacity", c.c_size_t),
                ("values", P)]


class Group(c.Structure):
    _fields_ = [("name", S), ("parts", P), ("factors", P), ("count", c.c_int)]


class Sensor(c.Structure):
    _fields_ = [("name", S), ("what", S), ("unit", S), ("sd", D)]


class Source(c.Structure):
    _fields_ = [("group", Group), ("model", c.c_int), ("noise", D), ("frequency", D), ("start", D), ("sd", D)]


class Parameter(c.Structure):
    _fields_ = [("group", Group), ("start", D), ("sd", D), ("drift", D)]


class Spec(c.Structure):
    _fields_ = [("sensors", c.POINTER(Sensor)), ("sources", c.POINTER(Source)), ("parameters", c.POINTER(Parameter)),
                ("sensor_count", c.c_int), ("source_count", c.c_int), ("parameter_count", c.c_int), ("filter", c.c_int),
                ("step", D), ("state_noise", D), ("state_sd", D), ("thesis_q", D), ("gate", D), ("frozen_after", c.c_int)]


class Description(c.Structure):
    _fields_ = [("ctx", P), ("arena", Arena), ("name", S), ("circuit", S), ("defines", P), ("define_count", c.c_int),
                ("netlist", c.POINTER(Netlist)), ("own", P), ("spec", Spec)]


class EstimateOf(c.Structure):
    _fields_ = [("value", D), ("sd", D)]


class Quantity(c.Structure):
    _fields_ = [("kind", c.c_int), ("index", c.c_int)]


class SensorState(c.Structure):
    _fields_ = [("innovation", D), ("sd", D), ("used", c.c_int64), ("missing", c.c_int64), ("gated", c.c_int64),
                ("stuck", c.c_bool), ("wild", c.c_bool)]


_lib.STRUCTS.update({
    "crd_circuit_input": Input, "crd_circuit_output": Output, "crd_netlist": Netlist, "crd_netlist_options": NetlistOptions,
    "crd_circuit_options": CircuitOptions, "crd_circuit_control": Control, "crd_circuit_choice": Choice,
    "crd_circuit_probe": Probe, "crd_circuit_probes": Probes, "crd_circuit_course": Course, "crd_circuit_record": Record,
    "crd_twin_group": Group, "crd_twin_sensor": Sensor, "crd_twin_source": Source, "crd_twin_parameter": Parameter,
    "crd_twin_spec": Spec, "crd_twin_description": Description, "crd_estimate": EstimateOf, "crd_twin_quantity": Quantity,
    "crd_twin_sensor_state": SensorState,
})

_lib.declare({
    "crd_netlist_load": (STATUS, [P, S, c.POINTER(NetlistOptions), c.POINTER(c.POINTER(Netlist))]),
    "crd_netlist_destroy": (None, [c.POINTER(Netlist)]),
    "crd_circuit_defaults": (CircuitOptions, []),
    "crd_circuit_control_defaults": (Control, []),
    "crd_circuit_create": (STATUS, [P, c.POINTER(Netlist), c.POINTER(CircuitOptions), c.POINTER(P)]),
    "crd_circuit_destroy": (None, [P]),
    "crd_circuit_form_name": (S, [P]),
    "crd_circuit_begin": (STATUS, [P, D]),
    "crd_circuit_set_input": (STATUS, [P, c.c_int, D]),
    "crd_circuit_time": (D, [P]),
    "crd_circuit_choose": (STATUS, [P, c.POINTER(Netlist), c.POINTER(CircuitOptions), D, D, c.POINTER(Choice)]),
    "crd_circuit_find_probes": (STATUS, [P, c.POINTER(Netlist), P, c.c_int, c.POINTER(Arena), c.POINTER(Probes)]),
    "crd_circuit_run_recorded": (STATUS, [P, c.POINTER(Course), c.POINTER(Record)]),
    "crd_twin_parse": (STATUS, [P, S, c.c_size_t, S, c.c_int, c.POINTER(Netlist), c.POINTER(c.POINTER(Description))]),
    "crd_twin_description_destroy": (None, [c.POINTER(Description)]),
    "crd_twin_create": (STATUS, [P, c.POINTER(Netlist), c.POINTER(Spec), c.POINTER(P)]),
    "crd_twin_destroy": (None, [P]),
    "crd_twin_begin": (STATUS, [P, D]),
    "crd_twin_set_input": (None, [P, c.c_int, D]),
    "crd_twin_step": (STATUS, [P, P]),
    "crd_twin_step_to": (STATUS, [P, D, P]),
    "crd_twin_time": (D, [P]),
    "crd_twin_now": (EstimateOf, [P, Quantity]),
    "crd_twin_sensor_now": (SensorState, [P, c.c_int]),
})

_METHODS = ("bdf1", "bdf2", "bdf3", "tr", "tr-carried", "trbdf2", "gauss2", "gauss4")
_FORMS = ("auto", "dae", "nodal")


def _one_of(what: str, value: Any, words: Sequence[str]) -> int:
    if value not in words:
        raise _lib.RangeError(f"{what} is {value!r}, expected one of " + ", ".join(words))
    return words.index(value)


def _time(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{what} is {type(value).__name__}, expected a number of seconds")
    if not (value > 0 and math.isfinite(value)):
        raise _lib.RangeError(f"{what} is {value} s, expected a time above 0")
    return float(value)


def _unknown(what: str, name: Any, names: Sequence[str]) -> _lib.NotFound:
    import difflib
    near = difflib.get_close_matches(str(name), names, 1)
    return _lib.NotFound(f"there is no {what} '{name}'" + (f", did you mean '{near[0]}'?" if near else ", expected one of "
                         + ", ".join(names[:8]) if names else ""))


def _inputs(n: Any) -> List[str]:
    return [n.inputs[i].name.decode() for i in range(n.input_count)]


class CircuitRun(Mapping[str, Any]):
    """What was recorded of a circuit: arrays by name, "t" for the times."""

    def __init__(self, names: List[str], units: Dict[str, str], values: Any, method: str, form: str, step: float,
                 steps: int) -> None:
        self._values = values
        self._at = {name: 1 + i for i, name in enumerate(names)}
        self.names = names
        self.units = units      #: physical units
        self.method = method
        self.form = form        #: of the equations: "dae", "nodal"
        self.step = step        #: s, the fixed one, or the first
        self.steps = steps

    def __getitem__(self, name: str) -> Any:
        at = 0 if name in ("t", "time") else self._at.get(name)
        if at is None:
            raise _unknown("signal", name, self.names)
        return self._values[:, at]

    def __iter__(self) -> Iterator[str]:
        return iter(["t", *self.names])

    def __len__(self) -> int:
        return 1 + len(self.names)

    def to_pandas(self) -> Any:
        """The record as a DataFrame over time."""
        pandas = _optional.need("pandas", "CircuitRun.to_pandas")
        return pandas.DataFrame({n: self[n] for n in self.names}, index=pandas.Index(self["t"], name="time"))

    def __repr__(self) -> str:
        return f"<cardan.CircuitRun, {len(self._values)} rows of {len(self.names)} signals by {self.method}>"


class Circuit(_lib.Unique):
    """An electric or thermal circuit from a netlist in the words of SPICE (docs/circuits.md).

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "rc.cir")
    >>> lines = ["low pass", ".param R=1k", "V1 in 0 dc 1", "R1 in out {R}", "C1 out 0 1u ic=0", ".tran 10u 5m uic", ".end"]
    >>> with open(path, "w") as f:
    ...     _ = f.write("\\n".join(lines))
    >>> run = Circuit(path, R=500).run(signals=["v(out)", "i(R1)"])
    >>> abs(float(run["v(out)"][100]) - (1 - math.exp(-2))) < 1e-4
    True

    Named arguments are values of `.param`.
    """

    def __init__(self, file: Path, **parameters: float) -> None:
        self._netlist: Any = None
        self._gate = _lib.Gate("circuit")
        self._ctx: Optional[_lib.Context] = _lib.Context()
        self.file = os.fspath(file)
        try:
            defines = [f"{k}={number(k, v)!r}".encode() for k, v in parameters.items()]
            texts = (S * max(1, len(defines)))(*defines)
            options = NetlistOptions(defines=c.cast(texts, P), define_count=len(defines))
            found = c.POINTER(Netlist)()
            self._ctx.check(lib.crd_netlist_load(self._ctx.handle, _lib.encode(file, "file"), c.byref(options),
                                                 c.byref(found)))
            self._netlist = found
        except BaseException:
            self.close()
            raise
        n = found.contents
        self.title = n.title.decode("utf-8", "replace")
        self.inputs = _inputs(n)                                                             #: names of `.input`
        self.outputs = [n.outputs[i].name.decode() for i in range(n.output_count)]           #: names of `.output`
        self.nodes = [n.nodes[i].decode() for i in range(1, n.node_count)]                   #: without ground

    def run(self, stop: Optional[float] = None, step: Optional[float] = None, *, signals: Optional[Sequence[str]] = None,
            method: str = "tr", form: str = "auto", accuracy: Optional[float] = None, variable: bool = False,
            relative: Optional[float] = None, inputs: Optional[Mapping[str, Any]] = None, every: int = 1,
            start: Optional[float] = None) -> CircuitRun:
        """Simulates from 0 to `stop` s, in steps of `step` s; what `.tran` says unless given.

        `signals` as in "v(out)", "v(a,b)", "i(R*)" or names of outputs; all outputs unless given, without any all nodes.
        `accuracy` (1e-3, say) chooses the cheapest method and step that keep it; `variable` takes steps as large as
        `relative` allows. Rows begin at `start`, every `every`-th step. `inputs` are numbers, or pairs of arrays of times and values along whose lines an input moves.
        """
        with self._gate:
            if self._ctx is None:
                raise _lib.StateError("the circuit is closed")
            return self._run(stop, step, signals, method, form, accuracy, variable, relative, inputs, every, start)

    def _run(self, stop: Optional[float], step: Optional[float], signals: Optional[Sequence[str]], method: str, form: str,
             accuracy: Optional[float], variable: bool, relative: Optional[float], inputs: Optional[Mapping[str, Any]],
             every: int, start: Optional[float]) -> CircuitRun:
        assert self._ctx is not None
        ctx, n = self._ctx, self._netlist.contents
        o = lib.crd_circuit_defaults()
        o.method, o.form = _one_of("method", method, _METHODS), _one_of("form", form, _FORMS)
        end = _time("stop", stop) if stop is not None else n.tran_stop
        o.step = _time("step", step) if step is not None else n.tran_step
        if math.isnan(end):
            raise _lib.RangeError("there is no .tran, expected stop with the end", self.file)
        if accuracy is not None:
            if variable:
                raise _lib.RangeError("accuracy chooses a fixed step and variable has none, expected one of them")
            if math.isnan(o.step):
                o.step = 1e-3 * end
            choice = Choice()
            ctx.check(lib.crd_circuit_choose(ctx.handle, self._netlist, c.byref(o), number("accuracy", accuracy), end,
                                            c.byref(choice)))
            o.method, o.step = choice.method, choice.step
        if math.isnan(o.step):
            raise _lib.RangeError("there is no .tran, expected step with the step", self.file)
        every = whole("every", every, 1, (1 << 31) - 1)
        if o.step > end:
            raise _lib.RangeError(f"step is {o.step} s, expected no more than stop, {end} s")
        if end / o.step > 1e10:
            raise _lib.RangeError(f"{end} s in steps of {o.step} s, expected at most 1e10 steps")
        begin = n.tran_start if start is None and n.tran_start < end else number("start", start or 0)
        if not 0 <= begin < end:
            raise _lib.RangeError(f"start is {begin} s, expected from 0 to less than stop, {end} s")
        given = self._given(inputs or {}, end, o.step, variable)
        try:
            return self._attempt(o, end, signals, variable, relative, given, every, begin)
        except _lib.ConvergenceError:
            if o.form != 0 or self._form != "nodal":
                raise
            o.form = 1  # what the nodal form cannot do the other one may
            return self._attempt(o, end, signals, variable, relative, given, every, begin)

    def _given(self, inputs: Mapping[str, Any], end: float, step: float, variable: bool) -> Any:
        """Values of the inputs at the ends of all steps, the start before them; None: nobody moves one."""
        names, n = [x.lower() for x in self.inputs], self._netlist.contents
        starts = np.array([n.inputs[i].start for i in range(n.input_count)], dtype=float)
        moving = any(isinstance(v, tuple) or np.ndim(v) for v in inputs.values())
        if moving and variable:
            raise _lib.RangeError("steps that vary would pass the corners of an input, expected a fixed step")
        rows = math.floor(end / step * (1 + 1e-12) + 1e-6) if moving else 0
        values = np.tile(starts, (rows + 1, 1))
        for name, value in inputs.items():
            if str(name).lower() not in names:
                raise _unknown("input", name, self.inputs)
            i = names.index(str(name).lower())
            if isinstance(value, tuple):
                if len(value) != 2:
                    raise _lib.RangeError(f"{name} has {len(value)} parts, expected times and values")
                t, y = one_dimension(value[0], f"times of {name}"), one_dimension(value[1], name)
                if len(t) != len(y) or not len(t) or not np.all(np.diff(t) > 0):
                    raise _lib.RangeError(f"{name} has {len(t)} times and {len(y)} values, expected as many, times rising")
                column = np.interp(np.arange(rows + 1) * step, t, y)
            elif np.ndim(value) == 0:
                column = np.full(rows + 1, number(name, value))
            else:
                raise _lib.RangeError(f"{name} is an array, expected a number or a pair of times and values")
            if not np.all(np.isfinite(column)):
                raise _lib.RangeError(f"{name} has a value that is no number")
            values[:, i] = column
        return np.ascontiguousarray(values)

    def _attempt(self, o: Any, end: float, signals: Optional[Sequence[str]], variable: bool, relative: Optional[float],
                 given: Any, every: int, begin: float) -> CircuitRun:
        assert self._ctx is not None
        ctx = self._ctx
        arena, probes, circuit = Arena(), Probes(), P()
        record = Record()
        try:
            lib.crd_arena_init(c.byref(arena), ctx.handle)
            asked = [_lib.encode(x, "signals") for x in ([signals] if isinstance(signals, str) else signals or [])]
            texts = (S * max(1, len(asked)))(*asked)
            ctx.check(lib.crd_circuit_find_probes(ctx.handle, self._netlist, c.cast(texts, P), len(asked), c.byref(arena),
                                                  c.byref(probes)))
            ctx.check(lib.crd_circuit_create(ctx.handle, self._netlist, c.byref(o), c.byref(circuit)))
            self._form = lib.crd_circuit_form_name(circuit).decode()
            for i, value in enumerate(given[0]):
                ctx.check(lib.crd_circuit_set_input(circuit, i, value))
            ctx.check(lib.crd_circuit_begin(circuit, 0.0))
            control = lib.crd_circuit_control_defaults()
            if relative is not None:
                control.relative = number("relative", relative)
            control.largest = self._netlist.contents.tran_largest
            record.probes, record.probe_count, record.every = probes.all, probes.count, every
            setattr(record, "from", begin)
            record.inputs, record.input_rows = given[1:].ctypes.data if len(given) > 1 else None, len(given) - 1
            course = Course(stop=end, control=c.pointer(control) if variable else None, most=1)
            while True:  # in slices, between which Python sees Ctrl-C
                before, done = clock.monotonic(), record.steps
                ctx.check(lib.crd_circuit_run_recorded(circuit, c.byref(course), c.byref(record)))
                if record.steps - done < course.most:
                    break
                if clock.monotonic() - before < _SLICE:
                    course.most *= 2
            names = [probes.all[i].name.decode() for i in range(probes.count)]
            units = {names[i]: (probes.all[i].unit or b"").decode() for i in range(probes.count)}
            width = 1 + probes.count
            flat = np.ctypeslib.as_array(c.cast(record.values, c.POINTER(D)), (record.rows, width)).copy()
            return CircuitRun(names, units, flat, _METHODS[o.method], self._form, o.step, record.steps)
        finally:
            lib.crd_circuit_destroy(circuit)
            lib.crd_free(ctx.handle, record.values)
            lib.crd_arena_clear(c.byref(arena))

    def close(self) -> None:
        """Frees the netlist."""
        with self._gate:
            netlist, self._netlist = self._netlist, None
            ctx, self._ctx = self._ctx, None
            if netlist:
                lib.crd_netlist_destroy(netlist)
            if ctx:
                ctx.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __repr__(self) -> str:
        return f"<cardan.Circuit {self.file}>"


class Estimate(NamedTuple):
    """An estimate and its standard deviation."""
    value: float
    sd: float


class Twin(_lib.Unique):
    """A digital twin: what no sensor measures, estimated step by step from what sensors say (docs/twins.md).

    `file` is the description, a path or its keys as a mapping with `circuit` as a path. `step` takes the measurements of one
    instant and gives all estimates: outputs of the netlist (or all nodes), unknown sources, values of parts.
    """

    def __init__(self, file: Union[Path, Mapping[str, Any]], *, start: float = 0.0) -> None:
        self._description: Any = None
        self._twin: Optional[int] = None
        self._gate = _lib.Gate("twin")
        self._ctx: Optional[_lib.Context] = _lib.Context()
        try:
            name, text = files_as_json(self._ctx, file, "twin")
            found, made = c.POINTER(Description)(), P()
            self._ctx.check(lib.crd_twin_parse(self._ctx.handle, text, len(text), name.encode("utf-8", "surrogateescape"), 1,
                                               None, c.byref(found)))
            self._description = found
            d = found.contents
            self._ctx.check(lib.crd_twin_create(self._ctx.handle, d.netlist, c.byref(d.spec), c.byref(made)))
            self._twin = made.value
            self._ctx.check(lib.crd_twin_begin(self._twin, number("start", start)))
        except BaseException:
            self.close()
            raise
        n, s = d.netlist.contents, d.spec
        self.sensors = [s.sensors[i].name.decode() for i in range(s.sensor_count)]  #: their names
        self.inputs = _inputs(n)                                                    #: names of `.input`
        self.step_size = float(s.step)                                              #: s between two measurements
        names: List[Any] = [(0, i, n.outputs[i].name.decode()) for i in range(n.output_count)]
        names = names or [(1, i, f"v({n.nodes[i].decode()})") for i in range(1, n.node_count)]
        names += [(2, i, s.sources[i].group.name.decode()) for i in range(s.source_count)]
        names += [(3, i, s.parameters[i].group.name.decode()) for i in range(s.parameter_count)]
        self._quantities = [(name, Quantity(kind, i)) for kind, i, name in names]
        self.names = [name for name, _ in self._quantities]                         #: of the estimates
        self._room: Any = (D * max(1, len(self.sensors)))()

    def _alive(self) -> _lib.Context:
        if self._ctx is None:
            raise _lib.StateError("the twin is closed")
        return self._ctx

    def step(self, measurements: Union[Mapping[str, float], Sequence[float]], time: Optional[float] = None, *,
             inputs: Optional[Mapping[str, float]] = None) -> Dict[str, Estimate]:
        """One step on, or to `time` s, then what was measured there. A sensor that is missing, or NaN, said nothing."""
        with self._gate:
            ctx = self._alive()
            if isinstance(measurements, Mapping):
                for name in measurements:
                    if name not in self.sensors:
                        raise _unknown("sensor", name, self.sensors)
                values = [number(name, measurements.get(name, math.nan)) for name in self.sensors]
            else:
                values = [number("a measurement", x) for x in measurements]
                if len(values) != len(self.sensors):
                    raise _lib.RangeError(f"got {len(values)} measurements, expected {len(self.sensors)}: "
                                          + ", ".join(self.sensors))
            if any(math.isinf(x) for x in values):
                raise _lib.RangeError("a measurement is infinite, expected a number, or NaN where there is none")
            for name, value in (inputs or {}).items():
                if name not in self.inputs:
                    raise _unknown("input", name, self.inputs)
                if not math.isfinite(number(name, value)):
                    raise _lib.RangeError(f"input {name} is {value}, expected a finite number")
                lib.crd_twin_set_input(self._twin, self.inputs.index(name), float(value))
            self._room[:] = values
            ctx.check(lib.crd_twin_step(self._twin, self._room) if time is None
                      else lib.crd_twin_step_to(self._twin, number("time", time), self._room))
            return self._estimates()

    @property
    def estimates(self) -> Dict[str, Estimate]:
        """What it thinks now."""
        with self._gate:
            return self._estimates()

    def _estimates(self) -> Dict[str, Estimate]:
        self._alive()
        found = ((name, lib.crd_twin_now(self._twin, q)) for name, q in self._quantities)
        return {name: Estimate(e.value, e.sd) for name, e in found}

    @property
    def time(self) -> float:
        """Simulated time, s."""
        with self._gate:
            self._alive()
            return float(lib.crd_twin_time(self._twin))

    def sensor(self, name: str) -> Dict[str, Any]:
        """What became of a sensor: `innovation` and its `sd`, how often it was `used`, `missing`, `refused`; `stuck`, `wild`."""
        with self._gate:
            self._alive()
            if name not in self.sensors:
                raise _unknown("sensor", name, self.sensors)
            s = lib.crd_twin_sensor_now(self._twin, self.sensors.index(name))
        return {"innovation": s.innovation, "sd": s.sd, "used": s.used, "missing": s.missing, "refused": s.gated,
                "stuck": s.stuck, "wild": s.wild}

    def run(self, t: Any, measurements: Mapping[str, Any], inputs: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Estimates along a recording: arrays of times and of each sensor (and input) to arrays of each estimate, and
        of its standard deviation as "NAME.sd"."""
        times = one_dimension(t, "t")
        for name in measurements:
            if name not in self.sensors:
                raise _unknown("sensor", name, self.sensors)
        columns = {**{k: one_dimension(v, k) for k, v in measurements.items()}}
        moved = {k: one_dimension(v, k) for k, v in (inputs or {}).items()}
        for name, y in [*columns.items(), *moved.items()]:
            if len(y) != len(times):
                raise _lib.RangeError(f"{name} has {len(y)} values, expected {len(times)} as there are times")
        out = np.empty((len(times), 2 * len(self.names)))
        for i, time in enumerate(times):
            found = self.step({k: y[i] for k, y in columns.items()}, time, inputs={k: y[i] for k, y in moved.items()})
            out[i] = [x for e in found.values() for x in e]
        result = {"t": times}
        for j, name in enumerate(self.names):
            result[name], result[name + ".sd"] = out[:, 2 * j], out[:, 2 * j + 1]
        return result

    def close(self) -> None:
        """Frees everything."""
        with self._gate:
            twin, self._twin = self._twin, None
            description, self._description = self._description, None
            ctx, self._ctx = self._ctx, None
            if twin:
                lib.crd_twin_destroy(twin)
            if description:
                lib.crd_twin_description_destroy(description)
            if ctx:
                ctx.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __repr__(self) -> str:
        return f"<cardan.Twin, {'closed' if self._ctx is None else f'at t = {self.time:g} s'}>"
