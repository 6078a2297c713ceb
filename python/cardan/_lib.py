"""libcardan by ctypes: where it is, its structs and functions, and what its failures become."""
from __future__ import annotations

import ctypes as c
import os
import re
import sys
from _thread import allocate_lock
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

P = c.c_void_p
S = c.c_char_p
STATUS = c.c_int


def _find() -> str:
    """The library of the wheel; beside a source tree that of its build; else the system's."""
    here = Path(__file__).resolve().parent
    given = os.environ.get("CARDAN_LIBRARY")
    if given:
        return given
    for place in (here / "_lib", here.parents[1] / "build"):
        for name in sorted(place.glob("libcardan.so*")):
            return str(name)
    return "libcardan.so.0"


LOG = c.CFUNCTYPE(None, P, c.c_int, S)


class ContextOptions(c.Structure):
    _fields_ = [("realloc", P), ("realloc_user", P), ("log", LOG), ("log_user", P), ("level", c.c_int)]


class MasterOptions(c.Structure):
    _fields_ = [
        ("stop", P), ("progress", P), ("progress_user", P), ("guard_crashes", c.c_bool), ("last_words", P),
        ("last_words_user", P), ("no_statistics", c.c_bool), ("defect_goal", c.c_double), ("energy_goal", c.c_double),
        ("open_end", c.c_bool), ("clock", P), ("scripts", P), ("script_count", c.c_int), ("columns", c.c_bool),
        ("snapshots", c.c_bool), ("resume", S), ("save_file", S), ("save_at", c.c_double), ("store", P), ("pass", P),
    ]


class HandleInfo(c.Structure):
    _fields_ = [
        ("unit", c.c_int), ("variable", c.c_int32), ("element", c.c_int32), ("count", c.c_int), ("type", c.c_int),
        ("causality", c.c_int), ("variability", c.c_int), ("text", S), ("at", c.POINTER(c.c_double)),
    ]


class TableColumn(c.Structure):
    _fields_ = [("name", S), ("unit", S), ("values", P), ("texts", P), ("time", P), ("rows", c.c_int64),
                ("type", c.c_int)]


class Table(c.Structure):
    _fields_ = [("path", S), ("rows", c.c_int64), ("column_count", c.c_int), ("time", P),
                ("columns", c.POINTER(TableColumn)), ("names", P)]


class CompareOptions(c.Structure):
    _fields_ = [("relative", c.c_double), ("absolute", c.c_double), ("patterns", P), ("pattern_count", c.c_int),
                ("pairs", P), ("pair_count", c.c_int)]


class Difference(c.Structure):
    _fields_ = [("name", S), ("only_in_a", c.c_bool), ("only_in_b", c.c_bool), ("differs", c.c_bool),
                ("first_time", c.c_double), ("max_error", c.c_double), ("max_error_time", c.c_double),
                ("value_a", c.c_double), ("value_b", c.c_double), ("rms_error", c.c_double),
                ("tolerance", c.c_double)]


class ComparisonTable(c.Structure):
    _fields_ = [("signal_count", c.c_int), ("different_count", c.c_int), ("signals", c.POINTER(Difference)),
                ("start", c.c_double), ("stop", c.c_double)]


class ReplayOptions(c.Structure):
    _fields_ = [
        ("step", c.c_double), ("delay", c.c_double), ("jitter", c.c_double), ("loss", c.c_double), ("burst", c.c_int),
        ("duplicate", c.c_double), ("seed", c.c_uint64), ("delays", P), ("delay_count", c.c_int64),
        ("first", c.c_int64), ("commands", P), ("command_count", c.c_int), ("command_delay", c.c_double),
    ]


class Score(c.Structure):
    _fields_ = [("count", c.c_int64), ("yy", c.c_double), ("ee", c.c_double), ("ye", c.c_double),
                ("dd", c.c_double), ("worst", c.c_double)]


class Metrics(c.Structure):
    _fields_ = [("M", c.c_double), ("P", c.c_double), ("C", c.c_double), ("rms", c.c_double), ("worst", c.c_double)]


class Text(c.Structure):
    _fields_ = [("ctx", P), ("data", P), ("length", c.c_size_t), ("capacity", c.c_size_t), ("failed", c.c_bool)]


class Place(c.Structure):
    _fields_ = [("file", S), ("line", c.c_int)]


class ModelVariable(c.Structure):
    _fields_ = [
        ("name", S), ("type", c.c_int), ("causality", c.c_int), ("variability", c.c_int), ("offset", c.c_size_t),
        ("size", c.c_size_t), ("capacity", c.c_size_t), ("start", c.c_double), ("starts", P), ("start_text", S),
        ("unit", S), ("description", S), ("depends", S), ("derivatives", c.c_size_t), ("items", P),
        ("exact", c.c_bool), ("min", c.c_double), ("max", c.c_double), ("derivative_of", S), ("nominal", c.c_double),
        ("by_element", c.c_bool), ("starts_with_all", c.c_bool),
    ]


INITIALIZE = c.CFUNCTYPE(c.c_int, P, P, c.c_double)
OUTPUTS = c.CFUNCTYPE(None, P, c.c_double)
STEP = c.CFUNCTYPE(c.c_int, P, P, c.c_double, c.c_double, c.POINTER(c.c_double))
OUTSIDE = c.CFUNCTYPE(c.c_size_t, P)
SAVE = c.CFUNCTYPE(None, P, P)
RESTORE = c.CFUNCTYPE(c.c_int, P, P, P, c.c_size_t)


class Model(c.Structure):
    _fields_ = [
        ("name", S), ("description", S), ("size", c.c_size_t), ("variables", c.POINTER(ModelVariable)),
        ("variable_count", c.c_int), ("default_step", c.c_double), ("default_stop", c.c_double),
        ("max_input_derivative", c.c_int), ("max_output_derivative", c.c_int), ("fixed_step", c.c_bool),
        ("has_events", c.c_bool), ("initialize", INITIALIZE), ("outputs", OUTPUTS), ("step", STEP), ("event", P),
        ("partial", P), ("derivatives", P), ("indicator_count", c.c_int), ("indicators", P), ("completed", P),
        ("user", P), ("pinned", c.c_bool), ("kept", c.c_size_t), ("clear", P), ("units", P), ("unit_count", c.c_int),
        ("stateless", c.c_bool), ("terminate", P), ("outside", OUTSIDE), ("save", SAVE), ("restore", RESTORE),
        ("libraries", S),
    ]


#: what the test of the layout compares with the headers
STRUCTS: Dict[str, Any] = {
    "crd_context_options": ContextOptions, "crd_master_options": MasterOptions, "crd_handle_info": HandleInfo,
    "crd_table_column": TableColumn, "crd_table": Table, "crd_compare_options": CompareOptions,
    "crd_difference": Difference, "crd_comparison": ComparisonTable, "crd_replay_options": ReplayOptions,
    "crd_score": Score, "crd_metrics": Metrics, "crd_text": Text, "crd_place": Place,
    "crd_model_variable": ModelVariable, "crd_model": Model,
}

#: structs of which this module knows the beginning, for the same test
PREFIXES: Dict[str, Any] = {}

_FUNCTIONS = {
    "crd_version": (S, []),
    "crd_context_create": (P, [c.POINTER(ContextOptions)]),
    "crd_context_destroy": (None, [P]),
    "crd_error_text": (S, [P]),
    "crd_free": (None, [P, P]),
    "crd_text_init": (None, [c.POINTER(Text), P]),
    "crd_text_clear": (None, [c.POINTER(Text)]),
    "crd_system_create": (STATUS, [P, c.POINTER(P)]),
    "crd_system_load_on": (STATUS, [P, S, c.c_size_t, S, P, c.POINTER(P)]),
    "crd_ssp_load": (STATUS, [P, S, S, c.POINTER(P)]),
    "crd_system_of_fmu": (STATUS, [P, S, c.POINTER(P)]),
    "crd_system_of_circuit": (STATUS, [P, S, c.POINTER(P)]),
    "crd_system_amend": (STATUS, [P, S, c.c_size_t, S, c.c_int]),
    "crd_system_add_model": (STATUS, [P, S, c.POINTER(Model), c.c_double, c.POINTER(c.c_int)]),
    "crd_system_split": (STATUS, [P, S, Place, c.POINTER(c.c_int), c.POINTER(S)]),
    "crd_system_set": (STATUS, [P, c.c_int, S, S, Place]),
    "crd_system_destroy": (None, [P]),
    "crd_master_create": (STATUS, [P, P, c.POINTER(MasterOptions), c.POINTER(P)]),
    "crd_master_initialize": (STATUS, [P]),
    "crd_master_advance": (STATUS, [P, c.c_int64]),
    "crd_master_finish": (STATUS, [P]),
    "crd_master_destroy": (None, [P]),
    "crd_master_ended": (c.c_int, [P]),
    "crd_master_time": (c.c_double, [P]),
    "crd_master_find": (STATUS, [P, S, c.POINTER(c.c_int)]),
    "crd_master_handle": (c.POINTER(HandleInfo), [P, c.c_int]),
    "crd_master_get": (STATUS, [P, c.c_int, P]),
    "crd_master_set": (STATUS, [P, c.c_int, P]),
    "crd_master_cancel": (None, [P]),
    "crd_master_table": (c.POINTER(Table), [P]),
    "crd_master_can_save": (STATUS, [P]),
    "crd_master_save": (STATUS, [P, c.POINTER(P)]),
    "crd_master_restore": (STATUS, [P, P]),
    "crd_master_reset": (STATUS, [P]),
    "crd_master_save_file": (STATUS, [P, S]),
    "crd_snapshot_time": (c.c_double, [P]),
    "crd_snapshot_size": (c.c_size_t, [P]),
    "crd_snapshot_destroy": (None, [P]),
    "crd_master_describe_verdict": (STATUS, [P, c.POINTER(Text)]),
    "crd_master_describe_run": (STATUS, [P, c.POINTER(Text)]),
    "crd_element_of_name": (STATUS, [P, S, c.POINTER(P)]),
    "crd_element_parse": (STATUS, [P, S, c.c_size_t, S, c.c_int, c.POINTER(P)]),
    "crd_element_destroy": (None, [P]),
    "crd_element_algorithms": (c.POINTER(S), []),
    "crd_replay_defaults": (ReplayOptions, []),
    "crd_coupling_replay": (STATUS, [P, P, c.POINTER(ReplayOptions), P, c.c_int64, P, P]),
    "crd_score_metrics": (Metrics, [c.POINTER(Score)]),
    "crd_table_read": (STATUS, [P, S, c.POINTER(c.POINTER(Table))]),
    "crd_table_write": (STATUS, [P, P, S, P, c.c_int]),
    "crd_table_destroy": (None, [c.POINTER(Table)]),
    "crd_compare_defaults": (CompareOptions, []),
    "crd_compare": (STATUS, [P, c.POINTER(Table), c.POINTER(Table), c.POINTER(CompareOptions),
                             c.POINTER(c.POINTER(ComparisonTable))]),
    "crd_comparison_destroy": (None, [c.POINTER(ComparisonTable)]),
}


def declare(functions: Mapping[str, Any], of: Any = None) -> None:
    """Functions of the library: what they return and take."""
    library = of or lib
    for name, (result, arguments) in functions.items():
        f = library[name]
        f.restype, f.argtypes = result, arguments
        setattr(library, name, f)


class _Library(c.CDLL):
    """Nothing is called that was not declared: ctypes would cut addresses to 32 bits."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is not declared")


def _load() -> Any:
    path = _find()
    try:
        lib = _Library(path)
        declare(_FUNCTIONS, lib)
    except (OSError, AttributeError) as e:
        raise ImportError(f"libcardan could not be loaded from {path}: {e}; "
                          "CARDAN_LIBRARY names another file") from e
    return lib


lib: Any = _load()


def _load_fast() -> Any:
    """The small module in C for what is called a million times, beside the library or this file; None: ctypes does it."""
    import importlib.machinery
    import importlib.util
    path = Path(_find()).with_name("_fast.abi3.so")
    if not path.exists():
        path = Path(__file__).with_name(path.name)
    if not path.exists() or os.environ.get("CARDAN_NO_FAST"):
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader("cardan._fast", str(path))
        spec = importlib.util.spec_from_loader("cardan._fast", loader)
        if spec is None:
            return None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
    except ImportError:
        return None  # another Python than CPython


#: of bind: what a Function gives crd_model
fast: Any = _load_fast()
fast_calls: Tuple[int, ...] = fast.bind(*(c.cast(getattr(lib, f"crd_master_{n}"), P).value
                                          for n in ("advance", "ended", "time", "get", "set", "cancel"))) if fast else ()
ssp_read = c.cast(lib["crd_ssp_read"], P)


# ---- failures ----------------------------------------------------------------------------------

class CardanError(Exception):
    """Something failed. `str(e)` is the library's sentence.

    `place` is where it was written ("car.yaml:12", or "connections[2]" of a system that was built by calls), "" if
    nowhere; `hint` the part that says what would be right, ""; `run` the run that failed, with everything up to there.
    """
    status = "CRD_E_STATE"

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(f"{place}: {sentence}" if place else sentence)
        self.sentence = sentence
        self.place = place
        found = re.search(r"(did you mean '[^']*'\?|expected .*)", sentence)
        self.hint = found.group(1) if found else ""
        self.run: Any = None

    def __reduce__(self) -> Any:
        return type(self), self.args, {**self.__dict__, "run": None}  # which belongs to its process


class NotFound(CardanError, LookupError):
    """Something that was named does not exist."""
    status = "CRD_E_NOT_FOUND"


class RangeError(CardanError, ValueError):
    """A value makes no sense."""
    status = "CRD_E_RANGE"


class FormatError(CardanError, ValueError):
    """A file or a description is not what it should be."""
    status = "CRD_E_FORMAT"


class Unsupported(CardanError, NotImplementedError):
    """This is not supported here."""
    status = "CRD_E_UNSUPPORTED"


class ReadWriteError(CardanError, OSError):
    """Reading or writing failed."""
    status = "CRD_E_IO"

    def __str__(self) -> str:
        return str(self.args[0])


class UnitError(CardanError):
    """A unit failed. `__cause__` is the exception of a unit in Python."""
    status = "CRD_E_UNIT"


class UnitCrash(UnitError):
    """A unit crashed."""
    status = "CRD_E_CRASH"


class StateError(CardanError, RuntimeError):
    """A call came at the wrong time."""
    status = "CRD_E_STATE"


class ConvergenceError(CardanError, ArithmeticError):
    """An iteration did not converge."""
    status = "CRD_E_CONVERGENCE"


class LimitError(CardanError):
    """A limit was not kept, or a loop diverges by its coupling."""
    status = "CRD_E_LIMIT"


class OutOfMemory(CardanError, MemoryError):
    """There is no memory left."""
    status = "CRD_E_MEMORY"


_KINDS = {-1: OutOfMemory, -2: RangeError, -3: FormatError, -4: NotFound, -5: Unsupported, -6: ReadWriteError,
          -7: UnitError, -8: UnitCrash, -9: StateError, -10: ConvergenceError, -12: LimitError}


def failure(status: int, text: str, places: Optional[Sequence[Tuple[int, str]]] = None) -> CardanError:
    """The exception of a status. `places`: lines of a description that was made here, and what stands there."""
    place = ""
    found = re.match(r"^([^\s:][^:\n]*):(\d+): ", text)
    if found:
        place, text = found.group(0)[:-2], text[found.end():]
        if places is not None and found.group(1) == DESCRIPTION:
            line = int(found.group(2))
            place = next((what for number, what in reversed(places) if number <= line), "")
            if place:  # which is more exact than what the library calls it, and counts as Python does
                text = re.sub(r"^(units|connections|bonds|run|results)\b[\w.\[\]-]*: ", "", text)
    return _KINDS.get(status, CardanError)(text, place)


class Gate:
    """One caller at a time: who comes second, from another thread or out of a callback, is told so."""

    def __init__(self, what: str) -> None:
        self._what, self._lock = what, allocate_lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise StateError(f"the {self._what} is at work in another thread or further up in this one, expected one call at a time")

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


class Forked:
    """The gate of what belongs to the process that this one was forked from: its threads and units are not here."""

    def __enter__(self) -> None:
        raise StateError("the run belongs to the process that this one was forked from, expected one that was started here")

    def __exit__(self, *_: Any) -> None:
        pass


def drop(folder: str, process: int) -> None:
    """A folder, by who has made it and not by its forks."""
    if os.getpid() == process:
        import shutil
        shutil.rmtree(folder, ignore_errors=True)


class Unique:
    """What owns memory of the library."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled: expected to be made anew where it is needed")


#: what a description that was made here is called in messages of the library
DESCRIPTION = "<system>"


class Context:
    """A context of the library, with its log. One thread at a time."""

    def __init__(self) -> None:
        self.lines: List[Tuple[str, str]] = []
        self._sink = LOG(self._take)
        logging = sys.modules.get("logging")  # of who wants more than to be warned
        self._logger = logging.getLogger("cardan") if logging else None
        level = 1 if not self._logger else 3 if self._logger.isEnabledFor(10) else 2 if self._logger.isEnabledFor(20) else 1
        options = ContextOptions(log=self._sink, level=level)
        self.handle: Optional[int] = lib.crd_context_create(c.byref(options))
        if not self.handle:
            raise OutOfMemory("there is no memory for a context")

    def _take(self, _user: Any, level: int, text: bytes) -> None:
        try:
            name, line = ("error", "warning", "info", "debug")[level], text.decode("utf-8", "replace")
            self.lines.append((name, line))
            if self._logger and self._logger.hasHandlers():
                self._logger.log((40, 30, 20, 10)[level], "%s", line)
        except BaseException:  # nothing may leave a callback
            pass

    def check(self, status: int, places: Optional[Sequence[Tuple[int, str]]] = None) -> None:
        if status < 0:
            raise failure(status, self.sentence(), places)

    def sentence(self) -> str:
        return str(lib.crd_error_text(self.handle).decode("utf-8", "replace"))

    def text(self, write: Callable[[Any], int]) -> str:
        """What a function of the library appends to a text."""
        t = Text()
        lib.crd_text_init(c.byref(t), self.handle)
        try:
            self.check(write(c.byref(t)))
            return c.string_at(t.data, t.length).decode("utf-8", "replace") if t.data else ""
        finally:
            lib.crd_text_clear(c.byref(t))

    def close(self) -> None:
        handle, self.handle = self.handle, None
        if handle and not sys.is_finalizing():
            lib.crd_context_destroy(handle)


def encode(text: Any, what: str) -> bytes:
    """A name or a path for the library."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str):
        raise TypeError(f"{what} is {type(text).__name__}, expected str")
    if "\0" in text:
        raise RangeError(f"{what} has a zero byte in it: {text!r}")
    return text.encode("utf-8", "surrogateescape")
