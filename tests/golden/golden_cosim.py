#!/usr/bin/env python3
"""Published numbers of Rodriguez (2021), chapter 5, without correction, through `cardan run`.

Rows as FMUs of FMI 2.0, of FMI 3.0, and mixed in turn; with --all each in all three. Errors of x1
and x2 (of s for the crane) are the largest over 10 s against the exact solution; energies are those
at the end. Tolerances: half a unit of the last digit given, and what rounding grows to in that row:
1e-8 of the value, or 1e-6 for NLO1 and Fig. 5.36.
"""

import numpy as np

from golden import (KINDS, Checks, fmu, kinds, place, printed, run, table,
                    without_output_derivatives)

SEMI_IMPLICIT = {"first.solver": "semi_implicit", "second.solver": "semi_implicit"}


def linear_oscillator(c, t):
    """x1, v1, x2, v2 in closed form by eigenvectors of x' = A x; m = 1, k = 10, 100, 1000."""
    A = np.array([[0, 1, 0, 0], [-110, -2 * c, 100, c], [0, 0, 0, 1], [100, c, -1100, -2 * c]])
    values, vectors = np.linalg.eig(A)
    weights = np.linalg.solve(vectors, np.array([0, 100, 0, -100], complex))
    return ((vectors * weights) @ np.exp(np.outer(values, t))).real


def linear_energy(x1, v1, x2, v2):
    return 0.5 * (v1**2 + v2**2 + 10 * x1**2 + 1000 * x2**2 + 100 * (x1 - x2) ** 2)


def largest(a, b):
    return float(np.max(np.abs(a - b)))


def oscillator_rows(checks, blunt):
    for turn, row in enumerate(table("thesis_none.csv")):
        if not row["problem"].startswith("LO"):
            continue
        cut = {"coupling DD": "dd", "coupling FF": "ff"}.get(row["figure"], "fd")
        c = 0.1 if row["problem"] == "LO2" else 0.0
        H, h1, h2, order = (float(row[k]) for k in ("H", "h_df", "h_ndf", "order"))
        sets = dict(SEMI_IMPLICIT, **{"first.c1": c, "second.c2": c})
        sets.update({"fd": {"first.cc": c}, "dd": {"first.cc": c, "second.cc": c},
                     "ff": {"spring.cc": c, "spring.solver": "semi_implicit"}}[cut])
        edits = []
        if h2 != H:  # mass 2 more often, its inputs in between held or along a line
            for unit, h in (("first", H), ("second", h2), ("spring", H)):
                old = f"lo_{cut}{ {'first': '1', 'second': '2', 'spring': 'spring'}[unit]}.fmu }}"
                if unit != "spring" or cut == "ff":
                    edits.append((old, old[:-2] + f", step: {h:g} }}"))
            if order == 1:
                for name in {"fd": ["f"], "ff": ["f"], "dd": ["x1", "v1"]}[cut]:
                    source = "spring" if cut == "ff" else "first"
                    edits.append((f"- {source}.{name} -> second.{name}\n",
                                  f"- {{ from: {source}.{name}, to: second.{name}, "
                                  "predict: linear }\n"))
        for kind in kinds(turn):
            system = place("oscillator_" + cut, kind, edits, blunt if order == 1 else None)
            r = run(system, sets=sets, step=min(H, h2), interval=H, stop_time=10)
            exact = linear_oscillator(c, r["time"])
            state = [r["first.x1"], r["first.v1"], r["second.x2"], r["second.v2"]]
            energy = linear_energy(*(s[-1] for s in state))
            reference = linear_energy(*exact[:, -1])
            name = f"{row['figure']} {row['problem']} {H * 1e3:g}/{h2 * 1e3:g} ms " \
                   f"order {order:g}, FMI {kind}"
            assert len(r["time"]) == round(10 / H) + 1
            for what, key, found in (("error x1", "max_err_first", largest(state[0], exact[0])),
                                     ("error x2", "max_err_second", largest(state[2], exact[2])),
                                     ("energy", "E_end", energy),
                                     ("relative energy error", "relE_end", energy / reference - 1)):
                checks.near(f"{name}: {what}", *in_order(printed(row[key], 1e-8), found))


def in_order(expected, found):
    return expected[0], found, expected[1]


def spot_check(checks):
    """Fig. 5.29a with all digits at t = 1 s."""
    published = {"first.x1": "-4.524954263", "first.v1": "-78.61176551",
                 "second.x2": "-3.734647104", "second.v2": "27.70693007"}
    for kind in KINDS:
        r = run(place("oscillator_fd", kind), sets=SEMI_IMPLICIT, stop_time=1)
        for name, value in published.items():
            checks.near(f"LO1 1 ms at t = 1 s, FMI {kind}: {name}",
                        *in_order(printed(value, 1e-10), r[name][-1]))


def nonlinear_rows(checks):
    cases = {"NLO1": {"springs": 1, "damping": 0}, "NLO2": {"springs": 0, "damping": 1}}
    for turn, row in enumerate(table("thesis_nonlinear.csv")):
        if row["problem"] not in cases:
            continue
        case, relative = cases[row["problem"]], float(row["relative"])
        c = 0.001 * case["damping"]
        mono = run(fmu("nlo_mono"), sets=dict(case, c1=c, cc=c, c2=c, substeps=2000), step=1e-3,
                   stop_time=10, output="mono.csv")
        start = mono["energy"][0]
        # Case 1 keeps its energy; the reference's own drift would count as the coupling's.
        reference = mono["energy"][-1] if c else start
        if not c:
            checks.near("NLO1 reference keeps its energy", start, mono["energy"][-1], 1e-6 * start)
        sets = {f"{u}.{k}": v for u in ("first", "second") for k, v in case.items()}
        sets.update(SEMI_IMPLICIT, **{"first.c1": c, "first.cc": c, "second.c2": c})
        for kind in kinds(turn):
            r = run(place("nonlinear_oscillator", kind), sets=sets)
            e = abs(r["first.x1"][-1] - r["second.x2"][-1])
            spring = 200 / 3 * e**1.5 if case["springs"] else 50 * e * e
            energy = r["first.energy"][-1] + r["second.energy"][-1] + spring
            for what, key, found in (
                    ("error x1", "max_err_first", largest(r["first.x1"], mono["x1"])),
                    ("error x2", "max_err_second", largest(r["second.x2"], mono["x2"])),
                    ("relative energy error", "relE_end", energy / reference - 1)):
                checks.near(f"{row['figure']} {row['problem']} 1 ms, FMI {kind}: {what}",
                            *in_order(printed(row[key], relative), found))


def pendula_row(checks):
    row = next(r for r in table("thesis_none.csv") if r["problem"] == "PEN")
    mono = run(fmu("pen_mono"), step=1e-3, stop_time=10, output="mono.csv")
    for kind in KINDS:
        r = run(place("pendula", kind), sets=SEMI_IMPLICIT)
        stretch = [r["first." + a + "1"][-1] - r["second." + a + "2"][-1] for a in "xy"]
        energy = r["first.energy"][-1] + r["second.energy"][-1] + 3 * np.dot(stretch, stretch)
        for what, key, found in (
                ("error x1", "max_err_first", largest(r["first.x1"], mono["x1"])),
                ("error x2", "max_err_second", largest(r["second.x2"], mono["x2"])),
                ("energy", "E_end", energy),
                ("relative energy error", "relE_end", energy / mono["energy"][-1] - 1)):
            checks.near(f"{row['figure']} PEN 1 ms, FMI {kind}: {what}",
                        *in_order(printed(row[key], 1e-8), found))


def crane_rows(checks):
    sets = {"mechanics.solver": "semi_implicit", "hydraulics.solver": "semi_implicit"}
    for turn, row in enumerate(table("thesis_nonlinear.csv")):
        if row["problem"] != "HC":
            continue
        H, h = float(row["H"]), float(row["h_df"])
        steps = int(10 / H + 1e-9)
        mono = run(fmu("hc_mono"), step=H, stop_time=steps * H, output="mono.csv",
                   sets={"substeps": round(H / 1e-4)})
        edits = [("step: 10 ms", f"step: {H}"), ("step: 0.25 ms", f"step: {h}"),
                 ("interval: 10 ms", f"interval: {H}")]
        if row["order"] == "0":
            edits.append(("predict: linear", "predict: hold"))
        for kind in kinds(turn):
            r = run(place("crane_fd", kind, edits), sets=sets, stop_time=steps * H)
            name = f"{row['figure']} HC {H * 1e3:g}/{h * 1e3:g} ms order {row['order']}, FMI {kind}"
            relative = float(row["relative"])
            checks.near(f"{name}: error s",
                        *in_order(printed(row["max_err_first"], relative),
                                  largest(r["mechanics.s"], mono["s"])))
            if row["relE_end"]:
                found = r["mechanics.energy"][-1] / mono["energy"][-1] - 1
                checks.near(f"{name}: relative energy error",
                            *in_order(printed(row["relE_end"], relative), found))


def main():
    checks = Checks(__doc__)
    blunt = without_output_derivatives("lo_fd1", "lo_fd2", "lo_dd1", "lo_dd2", "lo_ff1", "lo_ff2",
                                       "lo_ffspring")
    spot_check(checks)
    oscillator_rows(checks, blunt)
    nonlinear_rows(checks)
    pendula_row(checks)
    crane_rows(checks)
    checks.end()


if __name__ == "__main__":
    main()
