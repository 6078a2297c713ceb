"""Coupling elements, loops and signals in the frequency domain, and the design of elements."""
from __future__ import annotations

import ctypes as c
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _lib
from ._lib import Metrics, P, S, STATUS, lib
from ._run import Run, number, whole
from ._system import System
from ._tools import LOADER, Arena, Element, files_as_json, one_dimension
from ._tools import element as Opening

D = c.c_double


class Complex(c.Structure):
    _fields_ = [("re", D), ("im", D)]


class Interval(c.Structure):
    _fields_ = [("lo", D), ("hi", D)]


class Linear(c.Structure):
    _fields_ = [("m", c.c_int), ("k", c.c_int), ("a", c.POINTER(D)), ("A", c.POINTER(D)), ("b", D)]


class Linears(c.Structure):
    _fields_ = [("ctx", P), ("arena", Arena), ("own", Linear), ("count", c.c_int), ("linear", c.POINTER(Linear)),
                ("patterns", P)]


class BodePoint(c.Structure):
    _fields_ = [("omega", D), ("g", Complex), ("gain", D), ("phase_deg", D)]


class LimitsOf(c.Structure):
    _fields_ = [("magnitude", D), ("phase", D), ("magnitude_side", c.c_int), ("phase_side", c.c_int)]


class Peak(c.Structure):
    _fields_ = [("gain", D), ("omega", D)]


class LinearReport(c.Structure):
    _fields_ = [("e", c.POINTER(Linear)), ("limits", LimitsOf), ("dc", D), ("norm", D), ("patterns", c.c_int),
                ("peaks", c.POINTER(Peak)), ("peak_count", c.c_int), ("highest", c.c_int)]


class ElementReport(c.Structure):
    _fields_ = [("linears", Linears), ("step", D), ("k", c.c_int), ("pieces", c.POINTER(LinearReport)),
                ("worst", LimitsOf), ("highest", c.c_int)]


class Crossing(c.Structure):
    _fields_ = [("omega", D), ("margin", D)]


class NyquistOf(c.Structure):
    _fields_ = [("open_unstable", c.c_int), ("open_axis", c.c_int), ("encirclements", c.c_int),
                ("closed_unstable", c.c_int), ("min_distance", D), ("min_omega", D), ("points", c.c_int),
                ("one_loop", c.c_bool), ("gain_count", c.c_int), ("phase_count", c.c_int), ("gain", Crossing * 64),
                ("phase", Crossing * 64), ("delay_margin", D)]


class LoopPoint(c.Structure):
    _fields_ = [("omega", D), ("L", Complex)]


class ModesOf(c.Structure):
    _fields_ = [("known", c.c_bool), ("count", c.c_int), ("at", c.POINTER(Complex))]


class StabilityOf(c.Structure):
    _fields_ = [("stable", c.c_bool), ("nyquist_known", c.c_bool), ("no_nyquist", S), ("nyquist", NyquistOf),
                ("points", c.POINTER(LoopPoint)), ("poles", ModesOf), ("after", ModesOf), ("before", ModesOf),
                ("no_poles", S), ("variant", c.c_int), ("unstable_variants", c.c_int)]


class Spread(c.Structure):
    _fields_ = [("k_min", c.c_int), ("k_max", c.c_int), ("jitter", D), ("loss", D), ("burst", c.c_int),
                ("at_once", c.c_int)]


class LoopOptions(c.Structure):
    _fields_ = [("step", D), ("element", P), ("latency_steps", c.c_int), ("latency", D), ("load", LOADER),
                ("load_user", P), ("varied", c.c_bool), ("spread", Spread)]


class LoopOf(c.Structure):
    _fields_ = [("dT", D), ("transfer_count", c.c_int), ("transfers", P), ("element_count", c.c_int), ("elements", P),
                ("delay", D), ("network", P)]


class Plant(c.Structure):
    _fields_ = [("states", c.c_int), ("inputs", c.c_int), ("outputs", c.c_int), ("A", P), ("B", P), ("C", P), ("D", P),
                ("link_count", c.c_int), ("links", P)]


class LoopModel(c.Structure):
    _fields_ = [("ctx", P), ("arena", Arena), ("name", S), ("place", S), ("loop", LoopOf), ("whole", Plant),
                ("reduced", Plant), ("sampled", Plant), ("no_map", S), ("elements", P), ("element_count", c.c_int),
                ("element_capacity", c.c_size_t), ("direct", c.c_int), ("variants", c.c_int), ("varied", c.c_bool),
                ("exact", c.c_bool)]


class Goal(c.Structure):
    _fields_ = [("dT", D), ("k", c.c_int), ("m", c.c_int), ("magnitude", Interval), ("phase", Interval), ("omega_u", D),
                ("v", D), ("alpha", D), ("beta", D), ("gamma", D), ("delta", D)]


class Quality(c.Structure):
    _fields_ = [("J", D), ("J_m", D), ("J_p_deg", D), ("J_r_low", D), ("J_r_high", D), ("peak_gain", D),
                ("peak_omega", D), ("norm", D)]


class Margins(c.Structure):
    _fields_ = [("known", c.c_bool), ("stable", c.c_bool), ("phase", D), ("delay", D), ("nearest", D)]


class SignalOf(c.Structure):
    _fields_ = [("name", S), ("y", P), ("count", c.c_int64), ("step", D)]


class DesignTask(c.Structure):
    _fields_ = [("goal", Goal), ("degree", c.c_int), ("noise", D), ("margin", D), ("constant", c.c_bool), ("bands", P),
                ("band_count", c.c_int), ("signal", c.POINTER(SignalOf))]


class DesignedOf(c.Structure):
    _fields_ = [("by", c.c_int), ("linear", Linear), ("quality", Quality), ("metrics", Metrics), ("zoh", D),
                ("margins", Margins)]


class SpectrumOf(c.Structure):
    _fields_ = [("bins", c.c_int), ("omega", c.POINTER(D)), ("density", c.POINTER(D)), ("segments", c.c_int),
                ("variance", D)]


class SignalReport(c.Structure):
    _fields_ = [("mean", D), ("bandwidth", D), ("half", D), ("spectrum", SpectrumOf)]


_lib.STRUCTS.update({
    "crd_complex": Complex, "crd_interval": Interval, "crd_linear": Linear, "crd_linears": Linears,
    "crd_bode_point": BodePoint, "crd_limits": LimitsOf, "crd_peak": Peak, "crd_linear_report": LinearReport,
    "crd_element_report": ElementReport, "crd_crossing": Crossing, "crd_nyquist": NyquistOf,
    "crd_loop_point": LoopPoint, "crd_modes": ModesOf, "crd_stability": StabilityOf, "crd_spread": Spread,
    "crd_loop_options": LoopOptions, "crd_loop": LoopOf, "crd_plant": Plant, "crd_loop_model": LoopModel,
    "crd_goal": Goal, "crd_quality": Quality, "crd_margins": Margins, "crd_signal": SignalOf,
    "crd_design_task": DesignTask, "crd_designed": DesignedOf, "crd_spectrum": SpectrumOf,
    "crd_signal_report": SignalReport,
})

_lib.declare({
    "crd_analysis_element": (STATUS, [P, D, c.c_int, D, D, c.POINTER(ElementReport)]),
    "crd_element_report_clear": (None, [c.POINTER(ElementReport)]),
    "crd_element_latency": (c.c_int, [P, D]),
    "crd_latency_steps": (c.c_int, [D, D]),
    "crd_analysis_bode": (STATUS, [P, c.POINTER(Linear), D, P, c.c_int, P]),
    "crd_loop_defaults": (LoopOptions, []),
    "crd_loop_model_init": (None, [c.POINTER(LoopModel), P, S]),
    "crd_loop_model_clear": (None, [c.POINTER(LoopModel)]),
    "crd_loop_parse": (STATUS, [P, S, c.c_size_t, S, c.POINTER(LoopOptions), c.POINTER(LoopModel)]),
    "crd_master_prefer_exchange": (STATUS, [P, P]),
    "crd_master_linearise": (STATUS, [P, P, c.POINTER(LoopOptions), c.POINTER(LoopModel)]),
    "crd_analysis_loop": (STATUS, [c.POINTER(LoopModel), c.POINTER(StabilityOf)]),
    "crd_nyquist_phase_margin": (c.POINTER(Crossing), [c.POINTER(NyquistOf)]),
    "crd_nyquist_gain_margin": (c.POINTER(Crossing), [c.POINTER(NyquistOf)]),
    "crd_design_task_defaults": (DesignTask, []),
    "crd_designer_name": (S, [c.c_int]),
    "crd_design_find_bands": (STATUS, [P, c.POINTER(Arena), c.POINTER(DesignTask)]),
    "crd_design_make": (STATUS, [P, c.POINTER(DesignTask), c.c_int, c.c_int, c.POINTER(DesignedOf)]),
    "crd_design_describe": (STATUS, [S, D, c.POINTER(DesignedOf), c.c_int, P]),
    "crd_linear_clear": (None, [P, c.POINTER(Linear)]),
    "crd_analysis_signal": (STATUS, [P, c.POINTER(SignalOf), c.c_int, D, c.POINTER(SignalReport)]),
    "crd_spectrum_clear": (None, [P, c.POINTER(SpectrumOf)]),
})


def _array(at: Any, count: int) -> Any:
    """A copy of numbers of the library."""
    return np.array(at[:count], dtype=float) if at and count else np.empty(0)


def _complex(at: Any, count: int) -> Any:
    return np.array([complex(at[i].re, at[i].im) for i in range(count)], dtype=complex)


def _positive(what: str, value: Any) -> float:
    found = number(what, value)
    if not (found > 0 and math.isfinite(found)):
        raise _lib.RangeError(f"{what} is {found}, expected a number above 0")
    return found


def _steps(k: Any, latency: Optional[float], step: float) -> Optional[int]:
    """A latency in macro steps, from one in them or in s."""
    if k is not None and latency is not None:
        raise _lib.RangeError("k and latency say the same thing, expected one of them")
    if k is not None:
        return whole("k", k, 0, 10000)
    if latency is None:
        return None
    found = int(lib.crd_latency_steps(number("latency", latency), step))
    if found < 0:
        raise _lib.RangeError(f"latency is {latency} s, expected 0 to 10000 macro steps of {step} s")
    return found


# ---- elements ----------------------------------------------------------------------------------

@dataclass
class Limits:
    """Up to where an element is as good as the direct connection, as parts of the Nyquist frequency; inf: all the way."""
    magnitude: float
    phase: float


@dataclass
class Response:
    """The transfer function of a coupling element at one latency, from the signal to what the receiver sees of it."""
    element: str
    k: int             #: latency, macro steps
    step: float        #: s
    omega: Any         #: frequencies, rad/s
    response: Any      #: complex, at `omega`
    gain: Any          #: its magnitude
    phase: Any         #: in degrees, not folded
    limits: Limits
    peaks: Any         #: of the gain below 2 pi / step: rows of gain and frequency
    dc: float          #: what becomes of a constant 1
    norm: float        #: amplification of white noise
    a: Any             #: weights of the newest samples
    A: Any             #: weights of the reconstruction between macro steps, empty: hold
    b: float           #: constant
    pieces: List["Response"] = field(default_factory=list, repr=False)  #: of a network, one for each linear piece


def _bode(ctx: _lib.Context, e: Any, step: float, omega: Any) -> Tuple[Any, Any, Any]:
    points = np.empty((len(omega), 5))
    ctx.check(lib.crd_analysis_bode(ctx.handle, e, step, omega.ctypes.data, len(omega), points.ctypes.data))
    return points[:, 1] + 1j * points[:, 2], points[:, 3].copy(), points[:, 4].copy()


def _response(ctx: _lib.Context, name: str, k: int, step: float, omega: Any, r: Any, limits: Any) -> Response:
    e = r.e.contents
    g, gain, phase = _bode(ctx, r.e, step, omega)
    peaks = np.array([(r.peaks[i].gain, r.peaks[i].omega) for i in range(r.peak_count)], dtype=float).reshape(-1, 2)
    return Response(name, k, step, omega, g, gain, phase, Limits(limits.magnitude, limits.phase), peaks, r.dc, r.norm,
                    _array(e.a, e.m), _array(e.A, e.m), e.b)


def analyze(of: Element, step: Optional[float] = None, k: Optional[int] = None, *, latency: Optional[float] = None,
            omega: Any = None, points: int = 500, magnitude: float = 0.03, phase: float = 3.0) -> Response:
    """What a coupling element does to a signal: Bode data as arrays, limits, peaks.

    >>> foh = analyze("foh", 0.01, k=3)
    >>> bool(foh.gain.max() > 1.2), round(float(foh.dc), 9)
    (True, 1.0)

    `of` is a name (`cardan.algorithms()`), a mapping with the keys of an element (docs/coupling.md) or a file with one; `k` its
    latency in macro steps of `step` s, or `latency` in s. `omega` are frequencies in rad/s; without, `points` of them up to the
    Nyquist frequency. `magnitude` and `phase` (degrees) are the tolerances of `limits`. Of a network the numbers are those of
    the piece with the highest peak, with the limits of the worst one; `pieces` has them all.
    """
    ctx = _lib.Context()
    try:
        with Opening(ctx, of) as e:
            h = _positive("step", step if step is not None else e.step)
            age = _steps(k, latency, h)
            if age is None:
                age = int(lib.crd_element_latency(e.handle, h))
            if age < 0:
                raise _lib.RangeError(f"{e.label} has no latency of its own, expected k or latency")
            report = ElementReport()
            ctx.check(lib.crd_analysis_element(e.handle, h, age, number("magnitude", magnitude), number("phase", phase),
                                               c.byref(report)))
            try:
                if omega is None:
                    grid = np.geomspace(1e-3 * math.pi / h, math.pi / h, whole("points", points, 2, 1000000))
                else:
                    grid = np.ascontiguousarray(np.atleast_1d(one_dimension(omega, "omega")))
                found = [_response(ctx, e.label, age, h, grid, report.pieces[i], report.pieces[i].limits)
                         for i in range(report.linears.count)]
                if not report.linears.patterns:
                    return found[0]
                worst = _response(ctx, e.label, age, h, grid, report.pieces[report.highest], report.worst)
                worst.pieces = found
                return worst
            finally:
                lib.crd_element_report_clear(c.byref(report))
    finally:
        ctx.close()


# ---- loops -------------------------------------------------------------------------------------

@dataclass
class Loop:
    """Stability of a loop with its coupling elements: Nyquist's curve as arrays, margins, poles."""
    name: str
    stable: bool            #: by all of the below that is known
    omega: Any              #: rad/s, of Nyquist's curve
    L: Any                  #: complex, the open loop there; of a network det(I - links units) - 1
    gain_margins: Any       #: rows of factor and frequency, where L crosses the negative real axis; of one loop only
    phase_margins: Any      #: rows of degrees and frequency, where |L| = 1
    gain_margin: float      #: the one nearest to 1, NaN: none
    phase_margin: float     #: the one nearest to 0, degrees, NaN: none
    delay_margin: float     #: s that the stable loop does not survive, inf: there is none, NaN: not one loop
    min_distance: float     #: of L to -1
    min_omega: float        #: where that is
    unstable: int           #: poles of the closed loop on the right, -1: not known
    poles: Any              #: complex, of the closed loop, slowest first; of a pair the upper one; empty: not known
    modes: Any              #: complex, of the exact map over a macro step, inputs before outputs; empty: there is none
    modes_before: Any       #: the same, outputs sampled before the inputs' update
    unknown: List[str]      #: sentences: what is not known and why


def _modes(m: Any) -> Any:
    return _complex(m.at, m.count) if m.known else np.empty(0, complex)


def _pairs(at: Any, count: int) -> Any:
    return np.array([(at[i].margin, at[i].omega) for i in range(count)], dtype=float).reshape(-1, 2)


def _stability(ctx: _lib.Context, model: Any, name: str) -> Loop:
    s = StabilityOf()
    ctx.check(lib.crd_analysis_loop(c.byref(model), c.byref(s)))
    n, known = s.nyquist, s.nyquist_known
    count = n.points if known and s.points else 0
    try:
        points = np.array([(s.points[i].omega, s.points[i].L.re, s.points[i].L.im) for i in range(count)],
                          dtype=float).reshape(-1, 3)
    finally:
        if s.points:
            lib.crd_free(ctx.handle, c.cast(s.points, P))
    one = known and n.one_loop
    gain, phase = (find(c.byref(n)) if one else None
                   for find in (lib.crd_nyquist_gain_margin, lib.crd_nyquist_phase_margin))
    unknown = [t.decode() for t in ((b"" if known else s.no_nyquist), s.no_poles, model.no_map) if t]
    return Loop(name, s.stable, points[:, 0].copy(), points[:, 1] + 1j * points[:, 2],
                _pairs(n.gain, n.gain_count if one else 0), _pairs(n.phase, n.phase_count if one else 0),
                gain.contents.margin if gain else math.nan, phase.contents.margin if phase else math.nan,
                n.delay_margin if known else math.nan, n.min_distance if known else math.nan,
                n.min_omega if known else math.nan, n.closed_unstable if known else -1, _modes(s.poles),
                _modes(s.after), _modes(s.before), unknown)


def _of_system(ctx: _lib.Context, of: System, o: Any, at: Optional[float], model: Any) -> Loop:
    """Linearised where a run of it stands, which is not recorded."""
    at = None if at is None else number("at", at)
    run = Run(of, {} if at is None else {"stop": at}, False, record=False, exchange=True)
    try:
        while at is not None and not run.ended and run.time < at:
            run.advance(100)
        # In the context of the run, whose sentences are then of this.
        own = run._alive()
        lib.crd_loop_model_init(c.byref(model), own.handle, b"system")
        try:
            run._check(lib.crd_master_linearise(run._master, run._system, c.byref(o), c.byref(model)))
            return _stability(own, model, of.file or "system")
        finally:
            lib.crd_loop_model_clear(c.byref(model))
    finally:
        run.close()


def analyze_loop(of: Union[System, Mapping[str, Any], str, "os.PathLike[str]"], *, element: Optional[Element] = None,
                 k: Optional[int] = None, latency: Optional[float] = None, step: Optional[float] = None,
                 at: Optional[float] = None) -> Loop:
    """Is a loop stable with its coupling elements, and by which margin?

    >>> loop = analyze_loop({"loop": 1, "step": 0.01, "latency": 3, "transfers": [{"num": [4], "den": [0, 1, 0.1]}],
    ...                      "elements": ["foh"]})
    >>> loop.stable, bool(loop.phase_margin > 10)
    (True, True)

    `of` is a system, whose units are linearised at its start or after a run to `at`, or a loop (docs/analysis.md): a file or its
    keys as a mapping. `element`, `k` or `latency` (s) and `step` stand in for what it says.
    """
    ctx = _lib.Context()
    model = LoopModel()
    failed: List[BaseException] = []

    def load(_user: Any, text: bytes, out: Any) -> int:
        try:
            made = Opening(ctx, text.decode("utf-8", "surrogateescape"))
            out[0] = made.release()
            return 0
        except _lib.CardanError as e:
            failed.append(e)
            return -4
        except BaseException as e:
            failed.append(e)
            return -9

    given = None
    try:
        o = lib.crd_loop_defaults()
        if step is not None:
            o.step = _positive("step", step)
        if k is not None or latency is not None:
            if latency is not None and k is None:
                o.latency = number("latency", latency)
            else:
                o.latency_steps = _steps(k, latency, 1.0)
        if element is not None:
            given = Opening(ctx, element)
            o.element = given.handle
        callback = LOADER(load)
        o.load = callback
        if isinstance(of, System):
            return _of_system(ctx, of, o, at, model)
        if at is not None:
            raise _lib.RangeError("at is for systems: a loop has no time")
        name, text = files_as_json(ctx, of, "loop")
        status = lib.crd_loop_parse(ctx.handle, text, len(text), name.encode(), c.byref(o), c.byref(model))
        if failed:
            raise failed[0]
        ctx.check(status)
        try:
            return _stability(ctx, model, name)
        finally:
            lib.crd_loop_model_clear(c.byref(model))
    finally:
        if given is not None:
            given.close()
        ctx.close()


# ---- signals -----------------------------------------------------------------------------------

@dataclass
class Spectrum:
    """Where the power of a signal lies (Welch's method)."""
    omega: Any         #: rad/s
    density: Any       #: power per rad/s; its integral is the variance
    mean: float
    bandwidth: float   #: rad/s, most of the power lies below
    half: float        #: rad/s, half of it
    variance: float


def spectrum(signal: Any, step: float, *, part: float = 0.99, segment: int = 0) -> Spectrum:
    """The spectrum of a recorded signal, one sample each `step` s, and the bandwidth that has `part` of its power.

    >>> import numpy as np
    >>> t = np.arange(0, 50, 0.01)
    >>> bool(5 < spectrum(np.sin(6 * t), 0.01).bandwidth < 8)
    True
    """
    y = one_dimension(signal, "the signal")
    ctx = _lib.Context()
    try:
        s = SignalOf(b"signal", y.ctypes.data, len(y), _positive("step", step))
        r = SignalReport()
        try:
            ctx.check(lib.crd_analysis_signal(ctx.handle, c.byref(s), whole("segment", segment, 0, 1 << 30), number("part", part),
                                              c.byref(r)))
            return Spectrum(_array(r.spectrum.omega, r.spectrum.bins), _array(r.spectrum.density, r.spectrum.bins),
                            r.mean, r.bandwidth, r.half, r.spectrum.variance)
        finally:
            lib.crd_spectrum_clear(ctx.handle, c.byref(r.spectrum))
    finally:
        ctx.close()


# ---- design ------------------------------------------------------------------------------------

@dataclass
class Weights:
    """A designed algorithm for one latency, and what it is worth."""
    method: str
    k: int             #: latency, macro steps
    a: Any             #: weights of the newest samples
    b: float           #: constant
    J: float           #: the objective, and its parts: magnitude, phase in degrees, what is amplified
    J_m: float
    J_p: float
    J_r: float
    norm: float        #: amplification of white noise
    peak_gain: float
    peak_omega: float
    C: float           #: error on the signal after Sprague and Geers, NaN without one
    C_zoh: float       #: that of holding the last sample


class Design(List[Weights]):
    """Weights for each latency. `element` is what goes into `System.connect(coupling=...)` or `cardan.compensate`."""

    def __init__(self, weights: Sequence[Weights], element: Dict[str, Any]) -> None:
        super().__init__(weights)
        self.element = element


METHODS = ("moment", "savitzky-golay", "wiener", "optimal", "bounded")


def _task(step: Optional[float], band: Any, magnitude_band: Any, taps: int, degree: int, noise: Optional[float],
          margin: float, weights: Mapping[str, float]) -> Any:
    task = lib.crd_design_task_defaults()
    if step is not None:
        task.goal.dT = _positive("step", step)
    for name, given in (("phase", band), ("magnitude", magnitude_band)):
        if given is None:
            continue
        try:
            lo, hi = (float(given) / 100, float(given)) if np.ndim(given) == 0 else (float(x) for x in given)
        except (TypeError, ValueError):
            raise _lib.RangeError(f"{name} band is {given!r}, expected two frequencies in rad/s") from None
        if not 0 <= lo < hi < math.inf:
            raise _lib.RangeError(f"{name} band is {given!r}, expected two frequencies in rad/s, the lower one first")
        setattr(task.goal, name, Interval(lo, hi))
    task.goal.m, task.degree, task.margin = whole("taps", taps, 1, 1000), whole("degree", degree, 0, 100), number("margin", margin)
    if noise is not None:
        task.noise = _positive("noise", noise)
    for key, value in weights.items():
        if key not in ("alpha", "beta", "gamma", "delta", "v"):
            raise TypeError(f"design got {key!r}, expected alpha, beta, gamma, delta or v as weights")
        setattr(task.goal, key, number(key, value))
    return task


def _weights(d: Any) -> Weights:
    q = d.quality
    return Weights(lib.crd_designer_name(d.by).decode(), d.linear.k, _array(d.linear.a, d.linear.m), d.linear.b, q.J, q.J_m,
                   q.J_p_deg, q.J_r_low + q.J_r_high, q.norm, q.peak_gain, q.peak_omega, d.metrics.C, d.zoh)


def design(method: str = "wiener", *, k: Union[int, Sequence[int], None] = None, latency: Optional[float] = None,
           step: Optional[float] = None, band: Any = None, magnitude_band: Any = None, signal: Any = None, taps: int = 9,
           degree: int = 2, noise: Optional[float] = None, margin: float = 0.03, constant: bool = False,
           name: str = "designed", **weights: float) -> Design:
    """The coupling algorithm for a bandwidth, or for a recorded signal.

    >>> import numpy as np
    >>> t = np.arange(0, 20, 0.01)
    >>> y = np.sin(6 * t) + 0.3 * np.sin(11 * t)
    >>> best = design("wiener", signal=y, step=0.01, k=5)
    >>> len(best[0].a), bool(best[0].C < 0.2 * best[0].C_zoh)
    (9, True)
    >>> table = compensate(y, 0.01, 0.05, ["zoh", best.element])

    `method` is "moment", "savitzky-golay", "wiener", "optimal" or "bounded". `k` is a latency in macro steps, or several, for which
    the element has a table; or `latency` in s. `band` are two frequencies in rad/s between which the phase shall be right,
    `magnitude_band` the same for the gain; with a `signal` they come out of its spectrum. `alpha`, `beta`, `gamma`, `delta` and
    `v` are the weights of the objective (docs/analysis.md).
    """
    if method not in METHODS:
        raise _lib.RangeError(f"method is {method!r}, expected one of " + ", ".join(METHODS))
    if step is None or (band is None and signal is None):
        raise _lib.RangeError("expected step, and a band or a signal")
    task = _task(step, band, magnitude_band, taps, degree, noise, margin, weights)
    task.constant = bool(constant)
    several = list(k) if isinstance(k, Sequence) else [k]
    steps = [_steps(one, latency, task.goal.dT) for one in several]
    if not steps or None in steps:
        raise _lib.RangeError("expected k or latency: how old samples are when they are used")
    y = one_dimension(signal, "the signal") if signal is not None else None
    ctx = _lib.Context()
    arena, made = Arena(), (DesignedOf * len(steps))()
    count = 0
    try:
        lib.crd_arena_init(c.byref(arena), ctx.handle)
        if y is not None:
            recorded = SignalOf(b"signal", y.ctypes.data, len(y), task.goal.dT)
            task.signal = c.pointer(recorded)
        ctx.check(lib.crd_design_find_bands(ctx.handle, c.byref(arena), c.byref(task)))
        for one in sorted(x for x in set(steps) if x is not None):
            ctx.check(lib.crd_design_make(ctx.handle, c.byref(task), METHODS.index(method), one, c.byref(made[count])))
            count += 1
        text = ctx.text(lambda out: lib.crd_design_describe(_lib.encode(name, "name"), task.goal.dT, made, count, out))
        return Design([_weights(made[i]) for i in range(count)], json.loads(text))
    finally:
        for i in range(count):
            lib.crd_linear_clear(ctx.handle, c.byref(made[i].linear))
        lib.crd_arena_clear(c.byref(arena))
        ctx.close()
