"""Cardan couples real and virtual prototypes: systems of units, run together, with a verdict.

>>> import cardan
>>> sys = cardan.System()
>>> _ = sys.add("push", signal={"shape": "sine", "frequency": 2})
>>> run = sys.run(stop=1, step="1 ms")
>>> len(run["push.y"]), run.verdict.ok
(1001, True)
"""
from typing import TYPE_CHECKING, Any, List

from ._lib import (CardanError, ConvergenceError, FormatError, LimitError, NotFound, OutOfMemory, RangeError,
                   ReadWriteError, StateError, UnitCrash, UnitError, Unsupported, lib as _library)
from ._run import Run, State, Verdict, VerdictWarning
from ._system import System
from ._unit import Unit, unit

if TYPE_CHECKING:
    from ._analysis import Design, Limits, Loop, Response, Spectrum, Weights, analyze, analyze_loop, design, spectrum
    from ._circuit import Circuit, CircuitRun, Estimate, Twin
    from ._command import Reproduction, reproduce
    from ._tools import Compensated, Comparison, SignalDifference, algorithms, compare, compensate

__version__: str = _library.crd_version().decode()

__all__ = [
    "System", "Run", "State", "Verdict", "Unit", "unit", "compensate", "compare", "algorithms", "Compensated",
    "Comparison", "SignalDifference", "analyze", "analyze_loop", "spectrum", "design", "Response", "Limits", "Loop", "Spectrum",
    "Design", "Weights", "Circuit", "CircuitRun", "Twin", "Estimate", "reproduce", "Reproduction", "CardanError", "NotFound", "RangeError", "FormatError", "Unsupported",
    "ReadWriteError", "UnitError", "UnitCrash", "StateError", "ConvergenceError", "LimitError", "OutOfMemory",
    "VerdictWarning",
]

_LATER = {
    "_analysis": ("Design", "Limits", "Loop", "Response", "Spectrum", "Weights", "analyze", "analyze_loop", "design", "spectrum"),
    "_circuit": ("Circuit", "CircuitRun", "Estimate", "Twin"),
    "_command": ("Reproduction", "reproduce"),
    "_tools": ("Compensated", "Comparison", "SignalDifference", "algorithms", "compare", "compensate"),
}


def __getattr__(name: str) -> Any:
    """What not every program needs is imported when it is asked for."""
    from importlib import import_module
    if name == "study":
        return import_module(".study", __name__)
    for module, names in _LATER.items():
        if name in names:
            found = globals()[name] = getattr(import_module("." + module, __name__), name)
            return found
    raise AttributeError(f"module 'cardan' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
