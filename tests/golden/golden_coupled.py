#!/usr/bin/env python3
"""Every example as coupled FMUs against its monolithic FMU and closed form, through `cardan run`.

Units solve their own part finely, so that the error is that of the coupling: it has to fall with
the first, second, third power of the macro step for hold, linear, quadratic (within 0.1), for both
versions of FMI. Schemes against recursions written down here. Threads do not change a byte. With
--all each case with FMUs of FMI 2.0, of FMI 3.0, and mixed, else in turn.
"""

import functools
import os

import numpy as np

from golden import KINDS, SYSTEMS, TMP, Checks, cardan, fmu, kinds, place, run, table
from golden_cosim import largest, linear_oscillator

PREDICTIONS = ("hold", "linear", "quadratic")
DAMPED = {"first.c1": 0.1, "first.cc": 0.1, "second.c2": 0.1}


def expm(A):
    """exp(A) by scaling, 18 terms of the series, and squaring."""
    scale = max(0, int(np.ceil(np.log2(max(np.abs(A).sum(axis=1).max(), 1e-300)))) + 3)
    A = A / 2.0**scale
    result = term = np.eye(len(A))
    for k in range(1, 19):
        term = term @ A / k
        result = result + term
    for _ in range(scale):
        result = result @ result
    return result


def held(A, B, h):
    """Matrices P, Q of x(t + h) = P x + Q u for x' = A x + B u and a held u."""
    n, m = B.shape
    E = expm(np.block([[A, B], [np.zeros((m, n + m))]]) * h)
    return E[:n, :n], E[:n, n:]


def rotational(t):
    """phi1, omega1, phi2, omega2 of Glumac and Kovacic (2023), (42) to (44)."""
    A = np.array([[0, 1, 0, 0], [-.2, -.3, .1, .2], [0, 0, 0, 1], [.1, .2, -.2, -.4]])
    values, vectors = np.linalg.eig(A)
    weights = np.linalg.solve(vectors, np.array([.1, .1, .2, .1], complex))
    return ((vectors * weights) @ np.exp(np.outer(values, t))).real


def closed_forms(checks):
    for kind in "23":
        for c in (0.0, 0.1):
            r = run(fmu("lo_mono", kind), sets=dict(c1=c, cc=c, c2=c), step=1e-3, stop_time=10)
            exact = linear_oscillator(c, r["time"])
            for i, name in enumerate(("x1", "v1", "x2", "v2")):
                checks.below(f"lo_mono c = {c:g}, FMI {kind}: {name} against the closed form, of "
                             "100 m/s", largest(r[name], exact[i]), 1e-9)
        r = run(fmu("rot_mono", kind), step=1e-2, stop_time=50)
        exact = rotational(r["time"])
        for i, name in enumerate(("phi1", "omega1", "phi2", "omega2")):
            checks.below(f"rot_mono, FMI {kind}: {name} against the closed form",
                         largest(r[name], exact[i]), 1e-12)
        # The ball falls, and rises with 0.7 of its speed.
        r = run(fmu("events", kind), step=1e-2, stop_time=1.4)
        fall = np.sqrt(2 / 9.81)
        t, n = 1.4 - fall * (1 + 2 * 0.7), 2
        checks.near(f"events, FMI {kind}: bounces", n, r["bounces"][-1], 0)
        checks.near(f"events, FMI {kind}: height after the second impact",
                    0.49 * 9.81 * fall * t - 0.5 * 9.81 * t * t, r["height"][-1], 1e-12)


# System, its monolithic FMU, macro step, end, signal of the system and of the FMU, settings, and
# limits of the errors (over the signal's largest value) for hold and linear: twice those found when
# this was written.
QUADRATIC_DAMPERS = {f"{u}.{k}": v for u, c in (("first", ("c1", "cc")), ("second", ("c2",)))
                     for k, v in [("springs", 0), ("damping", 1)] + [(n, 0.001) for n in c]}
COUPLED = (
    ("oscillator_fd", "lo_mono", 1e-3, 2, "second.x2", "x2", DAMPED, (0.22, 6.4e-3)),
    ("oscillator_dd", "lo_mono", 1e-3, 2, "second.x2", "x2", dict(DAMPED, **{"second.cc": 0.1}),
     (0.016, 3.8e-4)),
    ("oscillator_ff", "lo_mono", 1e-3, 2, "second.x2", "x2",
     {"first.c1": 0.1, "spring.cc": 0.1, "second.c2": 0.1}, (0.084, 2.4e-3)),
    # Springs without kink: those with the square root bend at 0, where no order holds.
    ("nonlinear_oscillator", "nlo_mono", 1e-3, 2, "second.x2", "x2", QUADRATIC_DAMPERS,
     (0.2, 0.01)),
    ("pendula", "pen_mono", 1e-3, 2, "first.theta1", "theta1", {}, (7.6e-3, 5.4e-6)),
    ("pendula_dd", "pen_mono", 1e-3, 2, "first.theta1", "theta1", {}, (1.3e-3, 3.4e-6)),
    ("crane_fd", "hc_mono", 1e-3, 2, "mechanics.s", "s", {}, (2.8e-4, 3.4e-6)),
    ("crane_pd", "hc_mono", 1e-3, 2, "mechanics.s", "s", {}, (8.6e-5, 9.4e-7)),
    ("rotational", "rot_mono", 1e-1, 10, "second.omega2", "omega2", {}, (0.031, 1e-3)),
)


def coupled_against_monolithic(checks):
    turn = 0
    for system, mono, H, stop, signal, name, sets, limits in COUPLED:
        own = {k.split(".")[1]: v for k, v in sets.items()}
        edits = []
        if system == "crane_fd":  # one rate for all, so that the step can be halved
            edits = [(", step: 10 ms", ""), (", step: 0.25 ms", ""),
                     (", predict: linear", "")]

        @functools.lru_cache
        def whole_at(h):
            return run(fmu(mono), sets=own, step=h, stop_time=stop, interval=H, output="mono.csv")

        for order, predict in enumerate(PREDICTIONS[:2]):
            turn += 1
            for kind in kinds(turn):
                file = place(system, kind, edits)
                errors = []
                for h in (H, H / 2):
                    whole = whole_at(h)
                    r = run(file, sets=sets, step=h, stop_time=stop, interval=H,
                            predict=predict)
                    errors.append(largest(r[signal], whole[name]) / np.max(np.abs(whole[name])))
                text = f"{system} at {H:g} s, {predict}, FMI {kind}"
                checks.below(f"{text}: error of {signal} against {mono}", errors[0],
                             limits[order])
                checks.near(f"{text}: half the step divides the error by 2^p, p", order + 1,
                            np.log2(errors[0] / errors[1]), 0.25)


def force_force_is_monolithic(checks):
    """The force of the beginning of the step, from a unit of its own, is what semi-implicit Euler
    of the whole uses: not even rounding differs."""
    half = {f"{u}.solver": "semi_implicit" for u in ("first", "second", "spring")}
    for kind in KINDS:
        r = run(place("pendula_ff", kind), sets=half, step=1e-3, stop_time=10)
        whole = run(fmu("pen_mono"), sets={"solver": "semi_implicit"}, step=1e-3, stop_time=10,
                    output="mono.csv")
        for s, name in (("first.theta1", "theta1"), ("second.theta2", "theta2")):
            checks.below(f"pendula_ff, semi-implicit, FMI {kind}: {s} against pen_mono",
                         largest(r[s], whole[name]), 1e-14)


def orders(checks):
    """Slopes over four steps, least squares, with exact units and derivatives at the start."""
    cases = (("oscillator_fd", DAMPED, 1, (4e-4, 2e-4, 1e-4, 5e-5),
              {"first.x1": 0, "second.x2": 2}, lambda t: linear_oscillator(0.1, t)),
             ("oscillator_dd", dict(DAMPED, **{"second.cc": 0.1}), 1, (4e-4, 2e-4, 1e-4, 5e-5),
              {"first.x1": 0, "second.x2": 2}, lambda t: linear_oscillator(0.1, t)),
             ("rotational", {}, 10, (8e-2, 4e-2, 2e-2, 1e-2),
              {"first.omega1": 1, "second.omega2": 3}, rotational))
    turn = 0
    for system, sets, stop, steps, signals, solution in cases:
        turn += 1  # so that each prediction meets each kind
        for order, predict in enumerate(PREDICTIONS):
            turn += 1
            for kind in kinds(turn):
                file = place(system, kind)
                errors = {s: [] for s in signals}
                for h in steps:
                    r = run(file, sets=sets, step=h, interval=steps[0], stop_time=stop,
                            predict=predict)
                    exact = solution(r["time"])
                    for s, i in signals.items():
                        errors[s].append(largest(r[s], exact[i]))
                for s in signals:
                    slope = np.polyfit(np.log(steps), np.log(errors[s]), 1)[0]
                    checks.near(f"{system}, {predict}, FMI {kind}: slope of the error of {s} "
                                f"({errors[s][0]:.2g} ... {errors[s][-1]:.2g})", order + 1, slope,
                                0.1)


def recursion(H, count, scheme):
    """x1, x2 of the oscillator with exact units and held inputs; f keeps the input of its step."""
    P1, Q1 = held(np.array([[0, 1], [-110, -0.2]]), np.array([[0, 0], [100, 0.1]]), H)
    P2, Q2 = held(np.array([[0, 1], [-1000, -0.1]]), np.array([[0.0], [1]]), H)
    a, b = np.array([0.0, 100]), np.array([0.0, -100])
    gains = np.array([100, 0.1])
    f = gains @ (a - b)
    out = [(a[0], b[0])]
    for _ in range(count):
        seen = b
        if scheme == "gauss-seidel: [second, first]":
            b = P2 @ b + Q2[:, 0] * f
            seen = b
        a = P1 @ a + Q1 @ seen
        force, f = f, gains @ (a - seen)
        if scheme == "gauss-seidel: [first, second]":
            b = P2 @ b + Q2[:, 0] * f
        elif scheme == "jacobi":
            b = P2 @ b + Q2[:, 0] * force
        out.append((a[0], b[0]))
    return np.array(out).T


def schemes(checks):
    seen = {}
    for kind in KINDS:
        file = place("oscillator_fd", kind)
        for scheme in ("jacobi", "gauss-seidel: [first, second]", "gauss-seidel: [second, first]"):
            r = run(file, sets=DAMPED, step=1e-3, stop_time=2, scheme=scheme)
            x1, x2 = recursion(1e-3, 2000, scheme)
            seen[scheme] = x2
            d = np.max([largest(r["first.x1"], x1), largest(r["second.x2"], x2)])
            checks.below(f"{scheme}, FMI {kind}: against its recursion", d, 1e-10)
        for scheme in ("gauss-seidel: [first, second]", "gauss-seidel: [second, first]"):
            d = largest(seen[scheme], seen["jacobi"])
            checks.true(f"{scheme} is not jacobi", d > 1e-2, f"{d:.3g} m apart")
        # A loop has no first unit: any order of the two will do.
        r = run(file, sets=DAMPED, step=1e-3, stop_time=2, scheme="gauss-seidel")
        d = min(largest(r["second.x2"], x) for s, x in seen.items() if s != "jacobi")
        checks.below(f"gauss-seidel, FMI {kind}: order from the dependencies", d, 1e-10)


def electric_car(checks):
    names = ("x_G", "y_G", "theta", "vx", "s_F", "s_R", "omega_F")
    for kind in KINDS:
        for reaction in ("1", "0"):
            r = run(place("ecar", kind), sets={"car.reaction": reaction})
            whole = run(fmu("ecar_mono", kind if kind in "23" else "3"),
                        sets={"reaction": reaction}, step=1e-3, stop_time=2, output="mono.csv")
            rows = [row for row in table("ecar.csv") if row["reaction"] == reaction]
            worst = np.max([abs(r["car." + n][round(float(row["t"]) * 1000)] - float(row[n]))
                            for row in rows for n in names])  # NaN if one is; fails without rows
            checks.below(f"ecar, reaction {reaction}, FMI {kind}: against the reference of 1e-12",
                         worst, 1e-8)
            d = np.max([largest(r["car." + n], whole[n]) for n in names])
            # A step of ecar_mono is (t + h) - t long: rounded to 1e-16 s, 2000 times 62.5 rad/s2.
            checks.below(f"ecar, reaction {reaction}, FMI {kind}: against ecar_mono", d, 1e-10)


def threads(checks):
    systems = sorted(n[:-5] for n in os.listdir(SYSTEMS) if n.endswith(".yaml"))
    checks.true("all systems are there", len(systems) >= 11, f"{len(systems)}")
    for turn, system in enumerate(systems):
        for kind in kinds(turn):
            file = place(system, kind)
            data = []
            for n in ("1", "2"):
                out = os.path.join(TMP, f"threads{n}.csv")
                stop = "60" if system == "cooling" else "1"  # its step is 1 s
                cardan("run", file, "-q", "-o", out, "--stop-time", stop, "--threads", n)
                with open(out, "rb") as f:
                    data.append(f.read())
            checks.true(f"{system}, FMI {kind}: one thread and two give the same bytes",
                        data[0] == data[1] and len(data[0]) > 1000, f"{len(data[0])} bytes")


def main():
    checks = Checks(__doc__)
    closed_forms(checks)
    coupled_against_monolithic(checks)
    force_force_is_monolithic(checks)
    orders(checks)
    schemes(checks)
    electric_car(checks)
    threads(checks)
    checks.end()


if __name__ == "__main__":
    main()
