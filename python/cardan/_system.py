"""Systems: read from a file, or built by calls."""
from __future__ import annotations

import ctypes as c
import json
import math
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _lib, _show
from ._lib import lib
from ._run import Run
from ._unit import Instance, Unit

Path = Union[str, "os.PathLike[str]"]
#: keys of a unit that name a file
_FILES = ("fmu", "circuit", "twin", "replay", "description", "layout", "dbc")


def _plain(value: Any, what: str) -> Any:
    """A value as the description has it: numbers, texts, lists, mappings."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, f"{what}.{k}") for k, v in value.items()}
    if hasattr(value, "tolist"):  # NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v, f"{what}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise _lib.RangeError(f"{value} is no number that a description can have, expected a finite one", what)
        return value
    raise TypeError(f"{what} is {type(value).__name__}, expected a number, a text, a list or a mapping")


class System:
    """What runs: units, connections, power bonds, and how.

    >>> sys = System()
    >>> _ = sys.add("push", signal={"shape": "sine", "frequency": 2})
    >>> _ = sys.add("twice", unit(lambda u: 2 * u))
    >>> _ = sys.connect("push.y", "twice.u", predict="hold")
    >>> run = sys.run(stop=1, step=0.01)
    >>> len(run["twice.y"])
    101

    With a file (YAML, SSP, a single FMU or netlist) what is added comes on top of it. Keys are those of a description
    (docs/system.md), in Python's words: `add`, `connect` and `bond` take them as named arguments. Nothing is checked
    before `check`, `run` or `start`.
    """

    def __init__(self, file: Optional[Path] = None, *, variant: Optional[str] = None) -> None:
        self.file = os.fspath(file) if file is not None else None
        self.variant = variant
        self._units: Dict[str, Any] = {}
        self._models: Dict[str, Tuple[Unit, float]] = {}
        self._connections: List[Any] = []
        self._bonds: List[Any] = []
        self._options: Dict[str, Any] = {}
        self._record: Optional[List[str]] = None
        self._values: List[Tuple[str, str]] = []

    # ---- building --------------------------------------------------------------------------------

    def add(self, name: str, unit: Optional[Unit] = None, *, step: Any = None, **keys: Any) -> "System":
        """A unit: `fmu=`, `circuit=`, `twin=`, `replay=`, `signal=` ..., or one in Python (see `cardan.unit`)."""
        if name in self._units or name in self._models:
            raise _lib.RangeError(f"there is a unit '{name}' already", f"units.{name}")
        if callable(unit) and not isinstance(unit, Unit):
            unit = Unit(unit, None, None, None, None)
        if unit is not None:
            if not isinstance(unit, Unit):
                raise TypeError(f"units.{name} is {type(unit).__name__}, expected a function or class that "
                                "cardan.unit has made a unit, or fmu=, circuit=, signal= ...")
            parameters = keys.pop("parameters", {})
            if keys:
                raise TypeError(f"units.{name}: a unit in Python has no {sorted(keys)[0]!r}")
            unknown = [p for p in parameters if p not in unit.parameters and p not in unit.inputs]
            if unknown:
                raise _lib.NotFound(f"unit {unit.name} has no parameter '{unknown[0]}', expected one of "
                                    + ", ".join([*unit.parameters, *unit.inputs]), f"units.{name}.parameters")
            self._models[name] = (unit, float(step or 0))
            self._values += [(f"{name}.{k}", repr(float(v))) for k, v in parameters.items()]
            return self
        spec = {k: _plain(v, f"units.{name}.{k}") for k, v in keys.items()}
        for key in _FILES:
            if isinstance(spec.get(key), str):
                spec[key] = os.path.abspath(spec[key])
        if step is not None:
            spec["step"] = _plain(step, f"units.{name}.step")
        self._units[name] = spec
        return self

    def connect(self, source: str, target: str, **keys: Any) -> "System":
        """`connect("a.y", "b.u", coupling="auto", gain=2, predict="hold" ...)`."""
        at = f"connections[{len(self._connections)}]"
        self._connections.append({"from": _plain(source, at), "to": _plain(target, at),
                                  **{k: _plain(v, f"{at}.{k}") for k, v in keys.items()}})
        return self

    def bond(self, action: str, flow: str, **keys: Any) -> "System":
        """Two outputs whose product is a power (docs/system.md, bonds)."""
        at = f"bonds[{len(self._bonds)}]"
        self._bonds.append({"action": _plain(action, at), "flow": _plain(flow, at),
                            **{k: _plain(v, f"{at}.{k}") for k, v in keys.items()}})
        return self

    def options(self, **keys: Any) -> "System":
        """How it runs: `step=`, `stop=`, `scheme=`, `predict=`, `monitor=`, `control=` ... as `run:` of a description."""
        self._options.update({k: _plain(v, f"run.{k}") for k, v in keys.items()})
        return self

    def record(self, *patterns: str) -> "System":
        """Which variables are recorded: names with `*`. Without any: all outputs."""
        self._record = [str(p) for p in patterns] or None
        return self

    def set(self, name: str, value: Any) -> "System":
        """A start value or a parameter: `set("engine.mass", "1200 kg")`."""
        value = _plain(value, name)
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, list):
            value = " ".join(map(str, value))
        self._values.append((name, str(value)))
        return self

    # ---- running ---------------------------------------------------------------------------------

    def _description(self, options: Mapping[str, Any]) -> Tuple[str, List[Tuple[int, str]]]:
        """Text for the reader of descriptions, one thing per line, and what stands in which line."""
        lines, places = ["{"], [(1, "")]

        def put(what: str, text: str) -> None:
            lines.append(text)
            places.append((len(lines), what))

        if self._units:
            put("units", '"units": {')
            for name, spec in self._units.items():
                put(f"units.{name}", f"{json.dumps(name)}: {json.dumps(spec)},")
            put("units", "},")
        for key, entries in (("connections", self._connections), ("bonds", self._bonds)):
            if entries:
                put(key, f'"{key}": [')
                for i, entry in enumerate(entries):
                    put(f"{key}[{i}]", f"{json.dumps(entry)},")
                put(key, "],")
        if options:
            put("run", '"run": {')
            for key, value in options.items():
                put(f"run.{key}", f"{json.dumps(key)}: {json.dumps(value)},")
            put("run", "},")
        if self._record:
            put("results", f'"results": {{ "variables": {json.dumps(self._record)} }},')
        put("", "}")
        return ("\n".join(lines) if len(lines) > 2 else ""), places

    def _make(self, ctx: _lib.Context, options: Mapping[str, Any], failed: Any) -> Tuple[int, List[Instance]]:
        """The library's system, and the instances of units in Python that it borrows."""
        made = c.c_void_p()
        instances: List[Instance] = []
        file = _lib.encode(self.file, "file") if self.file is not None else b""
        end = os.path.splitext(self.file)[1].lower() if self.file is not None else ""
        if self.file is None:
            ctx.check(lib.crd_system_create(ctx.handle, c.byref(made)))
        elif end in (".ssp", ".ssd"):
            variant = _lib.encode(self.variant, "variant") if self.variant else None
            ctx.check(lib.crd_ssp_load(ctx.handle, file, variant, c.byref(made)))
        elif end == ".fmu":
            ctx.check(lib.crd_system_of_fmu(ctx.handle, file, c.byref(made)))
        elif end in (".cir", ".net", ".sp"):
            ctx.check(lib.crd_system_of_circuit(ctx.handle, file, c.byref(made)))
        else:
            ctx.check(lib.crd_system_load_on(ctx.handle, None, 0, file, _lib.ssp_read, c.byref(made)))
        try:
            for name, (unit, step) in self._models.items():
                instance = Instance(unit, failed)
                instances.append(instance)
                ctx.check(lib.crd_system_add_model(made, _lib.encode(name, "name"), c.byref(instance.model), step,
                                                   None))
            text, places = self._description({**self._options, **options})
            if text:
                data = text.encode()
                ctx.check(lib.crd_system_amend(made, data, len(data), _lib.DESCRIPTION.encode(), 1), places)
            for name, value in self._values:
                unit_index, variable = c.c_int(), c.c_char_p()
                place = _lib.Place(b"", 0)
                key = _lib.encode(name, "name")
                ctx.check(lib.crd_system_split(made, key, place, c.byref(unit_index), c.byref(variable)))
                ctx.check(lib.crd_system_set(made, unit_index, variable, _lib.encode(value, name), place))
        except BaseException:
            lib.crd_system_destroy(made)
            raise
        return made.value or 0, instances

    def start(self, *, snapshots: bool = True, **options: Any) -> Run:
        """A run that stands at its beginning, to be advanced step by step. Named arguments as in `options`."""
        return Run(self, {k: _plain(v, f"run.{k}") for k, v in options.items()}, snapshots)

    def resume(self, path: Path, **options: Any) -> Run:
        """A run that goes on from a file of `Run.save(path)`, to the last bit: of the same system, with the same
        version; `stop=` may be another one. Its record begins behind the state."""
        return Run(self, {k: _plain(v, f"run.{k}") for k, v in options.items()}, True,
                   resume=_lib.encode(path, "path"))

    def run(self, *, progress: Optional[bool] = None, **options: Any) -> Run:
        """Runs to the end: `sys.run(stop=10, step="1 ms")`. Ctrl-C ends it cleanly; what was computed is in `e.run`.

        What takes longer than a second shows its progress on a terminal and in a notebook; `progress` says yes or no.
        """
        run = self.start(snapshots=False, **options)
        shown = _show.Progress(run, progress)
        try:
            try:
                run.complete(shown)
            finally:
                shown.close()
        except BaseException as e:
            if not isinstance(e, _lib.CardanError):
                run._interrupted()
            try:
                setattr(e, "run", run)
            except AttributeError:
                pass
            raise
        return run

    def check(self) -> "System":
        """Everything but running: units are opened, connections resolved. Raises what is wrong."""
        Run(self, {}, False, initialize=False).close()
        return self

    def live(self, *, browser: bool = True, wait: bool = False, **options: Any) -> _show.Live:
        """Runs by the command, watched and steered on its page. `wait`: until Start is pressed there. Not with units in
        Python. `live.url` is the address, `live.stop()` the end."""
        return _show.live(self, {k: _plain(v, f"run.{k}") for k, v in options.items()}, browser, wait)

    def _repr_html_(self) -> str:
        return _show.system_html(self)

    def __repr__(self) -> str:
        return f"<cardan.System {self.file or 'built by calls'}, {len(self._units) + len(self._models)} units added>"
