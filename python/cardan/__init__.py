"""Cardan couples real and virtual prototypes: systems of units, run together, with a verdict.

>>> import cardan
>>> sys = cardan.System()
>>> _ = sys.add("push", signal={"shape": "sine", "frequency": 2})
>>> run = sys.run(stop=1, step="1 ms")
>>> len(run["push.y"]), run.verdict.ok
(1001, True)
"""
from ._lib import (CardanError, ConvergenceError, FormatError, LimitError, NotFound, OutOfMemory, RangeError,
                   ReadWriteError, StateError, UnitCrash, UnitError, Unsupported, lib as _library)
from ._run import Run, State, Verdict, VerdictWarning
from ._system import System
from ._tools import Compensated, Comparison, SignalDifference, algorithms, compare, compensate
from ._unit import Unit, unit
from ._analysis import Design, Limits, Loop, Response, Spectrum, Weights, analyze, analyze_loop, design, spectrum
from ._circuit import Circuit, CircuitRun, Estimate, Twin
from ._command import Reproduction, reproduce

__version__: str = _library.crd_version().decode()

__all__ = [
    "System", "Run", "State", "Verdict", "Unit", "unit", "compensate", "compare", "algorithms", "Compensated",
    "Comparison", "SignalDifference", "analyze", "analyze_loop", "spectrum", "design", "Response", "Limits", "Loop", "Spectrum",
    "Design", "Weights", "Circuit", "CircuitRun", "Twin", "Estimate", "reproduce", "Reproduction", "CardanError", "NotFound", "RangeError", "FormatError", "Unsupported",
    "ReadWriteError", "UnitError", "UnitCrash", "StateError", "ConvergenceError", "LimitError", "OutOfMemory",
    "VerdictWarning",
]
