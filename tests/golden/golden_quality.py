#!/usr/bin/env python3
"""Quality control through `cardan run`: how small the coupling error becomes, and with what.

Every number stands beside the published one. Variable steps and the rotational oscillator: Glumac
and Kovacic (2023); linear oscillator and hydraulic crane: Rodriguez (2021), with units that solve
their own part exactly or finely, so that the error is that of the coupling.
"""

import json
import os
import re
import tempfile
import zipfile

import numpy as np

from golden import FMUS, TMP, Checks, cardan, fmu, parse, place, run
from golden_cosim import largest, linear_energy, linear_oscillator
from golden_coupled import rotational


def changed(names, *edits, kinds="2", strict=True):
    """A folder like CARDAN_FMUS with copies of these FMUs that say something else of themselves."""
    folder = tempfile.mkdtemp(dir=TMP)
    for kind in kinds:
        os.mkdir(os.path.join(folder, "fmi" + kind))
        for name in names:
            target = os.path.join(folder, "fmi" + kind, name + ".fmu")
            with zipfile.ZipFile(fmu(name, kind)) as old, zipfile.ZipFile(target, "w") as new:
                for entry in old.infolist():
                    data = old.read(entry)
                    if entry.filename == "modelDescription.xml":
                        for pattern, text in edits:
                            data, found = re.subn(pattern, text, data)
                            assert found or not strict, f"{name} has no {pattern}"
                    new.writestr(entry, data)
    return folder


NO_STATE = (rb'canGetAndSetFMUstate="true" canSerializeFMUstate="true"', b"")
FIXED_STEP = (rb' canHandleVariableCommunicationStepSize="true"', b"")


def shafts(settings, kind="2", refresh=True, folders=(FMUS, FMUS), predict="auto", step=""):
    """The rotational oscillator as a system; `settings` are those of the run."""
    file = os.path.join(TMP, "shafts.yaml")
    fresh = ", refresh: yes" if refresh else ""
    with open(file, "w", encoding="utf-8") as f:
        f.write(f"""cardan: 1
units:
  one: {{ fmu: {folders[0]}/fmi{kind}/rot_1.fmu{fresh} }}
  two: {{ fmu: {folders[1]}/fmi{kind}/rot_2.fmu{fresh}{step} }}
connections: [ one.tau -> two.tau, two.omega2 -> one.omega2 ]
run: {{ stop: 50 s, predict: {predict}, {settings} }}
""")
    return file


def verdict(file, *arguments, code=0):
    """Signals and what --json says."""
    out = os.path.join(TMP, "out.csv")
    done = cardan("run", file, "--json", "-o", out, *arguments, code=code)
    return parse(out), json.loads(done.stdout)


def torque_and_speed(t):
    phi1, omega1, phi2, omega2 = rotational(t)
    return np.array([phi1 - phi2 + 2 * (omega1 - omega2), omega2])


def shaft_error(r):
    """Normalised RMS of tau and omega2 over time. The error is a line between two points."""
    t = r["time"]
    e = np.array([r["one.tau"], r["two.omega2"]]) - torque_and_speed(t)
    a, b = e[:, :-1], e[:, 1:]
    square = np.sum(np.diff(t) * np.sum(a * a + a * b + b * b, axis=0)) / 3
    fine = np.linspace(t[0], t[-1], 200001)
    size = np.mean(np.sum(torque_and_speed(fine) ** 2, axis=0)) * (t[-1] - t[0])
    return float(np.sqrt(square / size))


def variable_step(checks):
    """Limit: 1e-6 with 130 steps, no rollback. Published: 1.5e-4 with 114 (PI, second order)."""
    published = "published 1.5e-4 with 114 steps"
    tight = ("control: { tolerance: 3.2e-8, absolute: true, first: 1e-4 s, middle: false, "
             "reject: no }")
    r, v = verdict(shafts(tight, predict="hermite"))
    checks.below("rotational, 50 s, hermite, FMI 2: steps", v["steps"], 130)
    checks.below(f"rotational, 50 s, hermite, FMI 2: RMS ({published})", shaft_error(r), 1e-6)
    checks.true("rotational, FMI 2: nothing was taken back", v["control"]["rejected"] == 0)
    # Between steps of FMI 3 there is no way to tell an input's derivatives, so those of the outputs
    # are those of the predicted inputs: the controller answers with more steps.
    r, v = verdict(shafts(tight, "3", refresh=False, predict="hermite"))
    checks.below("rotational, 50 s, hermite, FMI 3 by directional derivatives: steps", v["steps"],
                 300)
    checks.below("rotational, 50 s, hermite, FMI 3: RMS", shaft_error(r), 1e-6)
    # The paper's controller and predictor with as many steps.
    r, v = verdict(shafts("control: { tolerance: 1.3e-5, absolute: true, method: pi, first: 1e-4 s,"
                          " defects: one-sided }", predict="taylor2"))
    checks.near("rotational, the paper's controller and taylor2: steps", 114, v["steps"], 6)
    checks.near("rotational, the paper's controller and taylor2: RMS", 1.5e-4, shaft_error(r), 1e-4)
    errors, steps = [], []
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        r, v = verdict(shafts(f"control: {tolerance:g}"))
        errors.append(shaft_error(r))
        steps.append(v["steps"])
        checks.true(f"rotational, auto, tolerance {tolerance:g}", 0.1 * tolerance < errors[-1]
                    < 20 * tolerance or errors[-1] < 1e-6,
                    f"{steps[-1]} steps, RMS {errors[-1]:.3g}")
    checks.true("rotational, auto: a smaller tolerance gives a smaller error with more steps",
                all(np.diff(errors) < 0) and all(np.diff(steps) > 0))


def hold_only_oscillator(checks):
    """Limits at 5 ms: 0.05 m and 0.5 % (thesis correction at its best tuning: 0.42 m, 30 %).

    `predict: ab<n>` hands constants to the units. Fresh feedthrough by directional derivatives, or
    by asking again. Found values of an independent prototype for ab2, ab3 and ab4.
    """
    found = {1e-3: {"ab2": 0.00631, "ab3": 0.00159}, 5e-3: {"ab2": 0.159, "ab3": 0.0430,
                                                           "ab4": 0.0444},
             1e-2: {"ab2": 0.665, "ab3": 0.204}}
    ways = (("2", False, "known feedthrough"), ("3", False, "known feedthrough"),
            ("2", True, "refreshed"))
    for H, rows in found.items():
        for predict, expected in rows.items():
            for kind, refresh, how in ways:
                edits = [(".fmu }", ".fmu, refresh: yes }")] if refresh else []
                r = run(place("oscillator_fd", kind, edits), step=H, stop_time=10, predict=predict)
                exact = linear_oscillator(0, r["time"])
                rms = float(np.sqrt(np.mean([(r["first.x1"] - exact[0])**2,
                                             (r["second.x2"] - exact[2])**2])))
                energy = 100 * (linear_energy(*(r[n][-1] for n in (
                    "first.x1", "first.v1", "second.x2", "second.v2"))) /
                    linear_energy(*exact[:, -1]) - 1)
                name = f"linear oscillator {1e3 * H:g} ms {predict}, FMI {kind}, {how}"
                checks.near(f"{name}: RMS of x1 and x2, m", expected, rms, 0.02 * expected)
                if predict == "ab4":
                    checks.below(f"{name}: RMS (published at best 0.42 m)", rms, 0.05)
                    checks.below(f"{name}: energy error in % (published at best 30, prototype "
                                 "0.21)", abs(energy), 0.5)


def crane(checks):
    """Limit: 0.3 mm at 30 ms. Hold diverges from 20 ms on (Rodriguez 2021 runs it at 10 ms)."""
    single = [(", step: 10 ms", ""), (", step: 0.25 ms", ""), (", predict: linear", "")]
    whole = run(fmu("hc_mono"), sets={"substeps": 400}, step=1e-2, stop_time=10, output="mono.csv")

    def error(H, predict, refresh, stop):
        sets = {"mechanics.substeps": 100, "hydraulics.substeps": 1000}
        edits = single + ([(".fmu }", ".fmu, refresh: yes }")] if refresh else [])
        file = place("crane_fd", "2", edits)
        out = os.path.join(TMP, "out.csv")
        line = ["run", file, "-q", "-o", out, "--step", H, "--stop-time", stop, "--interval", H,
                "--predict", predict]
        for name, value in sets.items():
            line += ["--set", f"{name}={value}"]
        try:
            cardan(*line)
        except AssertionError:  # a unit that is driven beyond its stops may say so
            return np.inf
        r = parse(out)
        every = round(H / 1e-2)
        n = len(r["time"])
        return 1e3 * largest(r["mechanics.s"], whole["s"][::every][:n])

    for refresh, how in ((False, "known feedthrough"), (True, "refreshed")):
        for H, limit in ((1e-2, 0.15), (2e-2, 0.2), (3e-2, 0.3)):
            stop = 9.99 if H == 3e-2 else 10
            checks.below(f"crane {1e3 * H:g} ms ab2, {how}: error of s, mm (prototype at 30 ms: "
                         "0.262)", error(H, "ab2", refresh, stop), limit)
        # Nothing is known of these units: auto begins with hold and leaves it only where nothing
        # rings, which it does from 20 ms on.
        checks.below(f"crane 10 ms auto, {how}: error of s, mm (hold 0.97)",
                     error(1e-2, "auto", refresh, 10), 1.25)
    checks.below("crane 10 ms hold: error of s, mm (prototype 0.97)",
                 error(1e-2, "hold", False, 10), 1.1)
    for H in (2e-2, 3e-2):
        e = error(H, "hold", False, 9.9)
        checks.true(f"crane {1e3 * H:g} ms hold diverges", not e < 10, f"{e:.3g} mm")


def iteration(checks):
    """Quintic Hermite between the ends of a step, both ends fitting together: about 1e-10."""
    sweeps, solutions = {}, {}
    for scheme in ("jacobi", "gauss-seidel"):
        for acceleration in ("fixed", "aitken", "iqn-ils"):
            r, v = verdict(shafts(f"step: 0.25 s, scheme: {scheme}, iterate: {{ sweeps: 20, "
                                  f"acceleration: {acceleration} }}"))
            name = f"rotational 0.25 s, {scheme}, {acceleration}"
            checks.below(f"{name}: RMS", shaft_error(r), 2e-10)
            checks.true(f"{name}: every step converged", v["iteration"]["failed"] == 0)
            sweeps[scheme, acceleration] = v["iteration"]["sweeps"] / v["iteration"]["steps"]
            solutions[scheme, acceleration] = r["one.tau"]
    for key, tau in solutions.items():
        checks.below(f"rotational, {key[0]}, {key[1]} against jacobi, fixed",
                     largest(tau, solutions["jacobi", "fixed"]), 1e-9)
    for acceleration in ("fixed", "iqn-ils"):
        a, b = sweeps["jacobi", acceleration], sweeps["gauss-seidel", acceleration]
        checks.true(f"sweeps per step, {acceleration}: Gauss-Seidel needs fewer than Jacobi",
                    b < 0.8 * a, f"{b:.2f} and {a:.2f}")


def iteration_with_others(checks):
    """A unit that cannot restore its state is stepped once; one that nobody iterates is refused."""
    rigid = changed(["rot_1", "rot_2"], NO_STATE)
    r, v = verdict(shafts("step: 0.25 s, iterate: { sweeps: 20 }", folders=(FMUS, rigid)))
    checks.true("iteration with one unit that cannot: it is named",
                v["iteration"]["stepped_once"] == "two", str(v["iteration"]["stepped_once"]))
    checks.below("iteration with one unit that cannot: RMS", shaft_error(r), 1e-3)
    done = cardan("run", shafts("step: 0.25 s, iterate: { sweeps: 20 }", folders=(rigid, rigid)),
                  "-o", TMP + "/out.csv", code=2)
    checks.true("iteration where no unit can: the message says what to do",
                "'iterate'" in done.stderr and "one, two" in done.stderr, done.stderr)
    settings = "step: 2 s, iterate: { sweeps: 3, acceleration: fixed, otherwise: %s }"
    done = cardan("run", shafts(settings % "stop"), "-o", TMP + "/out.csv", code=1)
    checks.true("no convergence, stop: the history of residuals", re.search(
        r"did not converge in 3 sweeps.*residuals in tolerances: \S+, \S+", done.stderr)
        is not None, done.stderr)
    r, v = verdict(shafts(settings % "explicit"))
    checks.true("no convergence, explicit: the run goes on and says so",
                v["iteration"]["failed"] > 0 and len(v["iteration"]["residuals"]) == 2 and
                r["time"][-1] == 50, f"{v['iteration']['failed']} of {v['iteration']['steps']} "
                f"steps, residuals {v['iteration']['residuals']}")


def rejection(checks):
    for tolerance in (1e-4, 1e-6):
        loose = verdict(shafts(f"control: {{ tolerance: {tolerance:g} }}"))[1]["control"]
        v = verdict(shafts(f"control: {{ tolerance: {tolerance:g}, reject: 2 }}"))[1]["control"]
        checks.true(f"rejection, tolerance {tolerance:g}: worst defect in tolerances",
                    v["worst"] <= 2 and v["rejected"] > 0,
                    f"{v['worst']:.3g} with {v['rejected']} steps taken back, without rejection "
                    f"{loose['worst']:.3g}")
    rigid = changed(["rot_2"], NO_STATE)
    done = cardan("run", shafts("control: { tolerance: 1e-4, reject: 2 }", folders=(FMUS, rigid)),
                  "-o", TMP + "/out.csv", code=2)
    checks.true("rejection with a unit that cannot restore its state",
                "unit 'two'" in done.stderr and "leave out 'reject'" in done.stderr, done.stderr)


def limits(checks):
    r, v = verdict(shafts("control: { tolerance: 1e-6, floor: 50 ms, ceiling: 200 ms }"))
    h = np.diff(r["time"])
    checks.true("floor and ceiling are kept", np.min(h[:-2]) > 0.05 - 1e-9 and
                np.max(h) < 0.2 + 1e-9 and v["control"]["at_ceiling"] > 0,
                f"steps of {np.min(h):.4g} s to {np.max(h):.4g} s, {v['control']['at_floor']} at "
                f"the floor, {v['control']['at_ceiling']} at the ceiling")


def sub_cycling(checks):
    """A unit that cannot vary its step makes several of its own in one of the run."""
    fixed = changed(["rot_2"], FIXED_STEP)
    done = cardan("run", shafts("control: 1e-5", folders=(FMUS, fixed)), "-o", TMP + "/out.csv",
                  code=2)
    checks.true("a unit with a fixed step and none given: what to do", "unit 'two' cannot vary" in
                done.stderr and "'step' of its own" in done.stderr, done.stderr)
    r, v = verdict(shafts("control: 1e-5", folders=(FMUS, fixed), step=", step: 10 ms"))
    h = np.diff(r["time"]) / 0.01
    checks.below("sub-cycling: steps are multiples of the unit's", float(np.max(np.abs(
        h - np.round(h)))), 1e-6)
    checks.true("sub-cycling: the step varies", np.max(np.round(h)) >= 4 * np.min(np.round(h)),
                f"{v['steps']} steps of {np.min(h) / 100:.3g} s to {np.max(h) / 100:.3g} s")
    checks.below("sub-cycling: RMS", shaft_error(r), 2e-4)


def events(checks):
    """A jump of a source in a run with variable steps: one row at its very time."""
    file = os.path.join(TMP, "push.yaml")
    mass = f"{{ fmu: {fmu('lo_fd2')}, refresh: yes, parameters: {{ x2: 0, v2: 0 }} }}"
    with open(file, "w", encoding="utf-8") as f:
        f.write(f"""cardan: 1
units:
  push: {{ signals: {{ f: {{ shape: step, start: 0.7312345 }}, g: {{ shape: sine, frequency: 1 Hz }} }} }}
  mass: {mass}
  other: {mass}
connections: [ push.f -> mass.f, push.g -> other.f ]
run: {{ stop: 2 s, control: 1e-4 }}
""")
    r, v = verdict(file)
    at = np.flatnonzero(r["time"] == 0.7312345)
    checks.true("events: a row at the time of the jump", len(at) == 1 and
                v["control"]["events"] >= 1, f"{len(at)} rows, {v['control']['events']} events")
    after = r["time"][at[0]:] - 0.7312345
    checks.below("events: the mass follows the closed form behind it", largest(
        r["mass.x2"][at[0]:], (1 - np.cos(np.sqrt(1000) * after)) / 1000), 1e-9)
    checks.below("events: and was at rest before", float(np.max(np.abs(
        r["mass.x2"][:at[0] + 1]))), 1e-15)


def main():
    checks = Checks(__doc__)
    variable_step(checks)
    hold_only_oscillator(checks)
    crane(checks)
    iteration(checks)
    iteration_with_others(checks)
    rejection(checks)
    limits(checks)
    sub_cycling(checks)
    events(checks)
    checks.end()


if __name__ == "__main__":
    main()
