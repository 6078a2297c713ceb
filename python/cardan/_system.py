"""Systems: read from a file, or built by calls."""
from __future__ import annotations

import ctypes as c
import json
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _lib
from ._lib import lib
from ._optional import Later
from ._run import Run
from ._unit import Instance, Unit

if TYPE_CHECKING:
    import numpy as np

    from . import _show, _tools
else:
    np, _show, _tools = Later("numpy"), Later("cardan._show"), Later("cardan._tools")

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


def _written(units: Mapping[str, Any], connections: Mapping[int, Any], bonds: Mapping[int, Any], options: Mapping[str, Any],
             record: Optional[List[str]] = None) -> Tuple[str, List[Tuple[int, str]]]:
    """Text for the reader of descriptions, one key per line, and what stands in which line."""
    lines, places = ["{"], [(1, "")]

    def put(what: str, text: str) -> None:
        lines.append(text)
        places.append((len(lines), what))

    def put_keys(what: str, before: str, entry: Any, after: str) -> None:
        put(what, before)
        for key, value in entry.items():
            put(f"{what}.{key}", f"{json.dumps(key)}: {json.dumps(value)},")
        put(what, after)

    if units:
        put("units", '"units": {')
        for name, spec in units.items():
            put_keys(f"units.{name}", f"{json.dumps(name)}: {{", spec, "},")
        put("units", "},")
    for what, entries in (("connections", connections), ("bonds", bonds)):
        if entries:
            put(what, f'"{what}": [')
            for i, entry in entries.items():
                put_keys(f"{what}[{i}]", "{", entry, "},")
            put(what, "],")
    if options:
        put_keys("run", '"run": {', options, "},")
    if record:
        put("results.variables", f'"results": {{ "variables": {json.dumps(record)} }},')
    put("", "}")
    return ("\n".join(lines) if len(lines) > 2 else ""), places


def _look_at(units: Mapping[str, Any], connections: Mapping[int, Any], bonds: Mapping[int, Any],
             options: Mapping[str, Any]) -> None:
    """What can be said of a part without the rest: keys, values, physical units."""
    text, places = _written(units, connections, bonds, options)
    if not text:
        return
    ctx = _lib.Context()
    made = c.c_void_p()
    try:
        ctx.check(lib.crd_system_create(ctx.handle, c.byref(made)))
        data = text.encode()
        ctx.check(lib.crd_system_amend(made, data, len(data), _lib.DESCRIPTION.encode(), 1), places)
    finally:
        lib.crd_system_destroy(made)
        ctx.close()


def _look_for_algorithm(word: Any, place: str) -> None:
    """Is there a coupling algorithm of this name? What else an element says is seen when units are opened."""
    if not isinstance(word, str) or "/" in word or "." in word:
        return
    ctx = _lib.Context()
    try:
        with _tools.element(ctx, word):
            pass
    except _lib.NotFound as e:
        if "is not known" in e.sentence:  # else it needs more than its name
            raise _lib.NotFound(e.sentence, place) from None
    except _lib.CardanError:
        pass
    finally:
        ctx.close()


def _stand_ins(*names: Any) -> Dict[str, Any]:
    """Units of the names of some variables, as nothing in particular."""
    return {str(name).split(".", 1)[0]: {"signal": {"shape": "constant"}} for name in names if "." in str(name).strip(".")}


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
    (docs/system.md), in Python's words: `add`, `connect` and `bond` take them as named arguments. Each of these calls checks its
    keys and values; whether variables exist and fit is seen by `check`, `run` or `start`, which open the units.
    """

    def __init__(self, file: Optional[Path] = None, *, variant: Optional[str] = None) -> None:
        self.file = os.fspath(file) if file is not None else None
        self.variant = variant
        self._units: Dict[str, Any] = {}
        self._models: Dict[str, Tuple[Unit, Dict[str, Any]]] = {}  # and what else is said of them
        self._connections: List[Any] = []
        self._bonds: List[Any] = []
        self._options: Dict[str, Any] = {}
        self._record: Optional[List[str]] = None
        self._values: List[Tuple[str, str]] = []
        self._folder: Optional[str] = None  # of recordings that were arrays

    # ---- building --------------------------------------------------------------------------------

    def add(self, name: str, unit: Optional[Unit] = None, *, step: Any = None, **keys: Any) -> "System":
        """A unit: `fmu=`, `circuit=`, `twin=`, `replay=`, `signal=` ..., or one in Python (see `cardan.unit`).

        `replay=` is a file or a mapping of arrays, "t" for the times and each other name an output.
        """
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
            if step is not None:
                keys = {"step": _plain(step, f"units.{name}.step")}
                _look_at({name: {"signal": {"shape": "constant"}, **keys}}, {}, {}, {})
            self._models[name] = (unit, keys)
            self._values += [(f"{name}.{k}", " ".join(repr(float(x)) for x in np.ravel(v))) for k, v in parameters.items()]
            return self
        if isinstance(keys.get("replay"), Mapping):
            keys["replay"] = self._recording(name, keys["replay"])
        spec = {k: _plain(v, f"units.{name}.{k}") for k, v in keys.items()}
        for key in _FILES:
            if isinstance(spec.get(key), str):
                spec[key] = os.path.abspath(spec[key])
        if step is not None:
            spec["step"] = _plain(step, f"units.{name}.step")
        _look_at({name: spec}, {}, {}, {})
        self._units[name] = spec
        return self

    def _recording(self, name: str, arrays: Mapping[str, Any]) -> str:
        """Arrays as a file of this system."""
        if self._folder is None:
            import tempfile
            self._folder = tempfile.mkdtemp(prefix="cardan-")
            weakref.finalize(self, _lib.drop, self._folder, os.getpid())
        ctx = _lib.Context()
        path = os.path.join(self._folder, f"{len(os.listdir(self._folder))}.mf4")
        try:
            opened = _tools.Opened(ctx, arrays)
            if not opened.table.contents.rows:
                raise _lib.RangeError("the recording has no rows, expected at least one", f"units.{name}.replay")
            ctx.check(lib.crd_table_write(ctx.handle, opened.table, path.encode(), None, 0))
        finally:
            ctx.close()
        return path

    def connect(self, source: str, target: str, **keys: Any) -> "System":
        """`connect("a.y", "b.u", coupling="auto", gain=2, predict="hold" ...)`."""
        number = len(self._connections)
        at = f"connections[{number}]"
        entry = {"from": _plain(source, at), "to": _plain(target, at), **{k: _plain(v, f"{at}.{k}") for k, v in keys.items()}}
        _look_at(_stand_ins(source, target), {number: entry}, {}, {})
        coupling = entry.get("coupling")
        _look_for_algorithm(coupling.get("algorithm") if isinstance(coupling, dict) else coupling, f"{at}.coupling")
        self._connections.append(entry)
        return self

    def bond(self, action: str, flow: str, **keys: Any) -> "System":
        """Two outputs whose product is a power (docs/system.md, bonds)."""
        number = len(self._bonds)
        at = f"bonds[{number}]"
        entry = {"action": _plain(action, at), "flow": _plain(flow, at), **{k: _plain(v, f"{at}.{k}") for k, v in keys.items()}}
        _look_at(_stand_ins(action, flow), {}, {number: entry}, {})
        self._bonds.append(entry)
        return self

    def options(self, **keys: Any) -> "System":
        """How it runs: `step=`, `stop=`, `scheme=`, `predict=`, `monitor=`, `control=` ... as `run:` of a description."""
        new = {k: _plain(v, f"run.{k}") for k, v in keys.items()}
        _look_at({}, {}, {}, new)
        self._options.update(new)
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
        own = {name: keys for name, (_, keys) in self._models.items() if keys}
        return _written({**self._units, **own}, dict(enumerate(self._connections)), dict(enumerate(self._bonds)),
                        {**self._options, **options}, self._record)

    def _make(self, ctx: _lib.Context, options: Mapping[str, Any], failed: Any
              ) -> Tuple[int, List[Instance], List[Tuple[int, str]]]:
        """The library's system, the instances of units in Python that it borrows, and what it reads in which line."""
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
            for name, (unit, _) in self._models.items():
                instance = Instance(unit, failed)
                instance.unit = name
                instances.append(instance)
                ctx.check(lib.crd_system_add_model(made, _lib.encode(name, "name"), c.byref(instance.model), 0.0,
                                                   None))
            text, places = self._description(options)
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
        return made.value or 0, instances, places

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
