#!/usr/bin/env python3
"""Over a folder of FMUs: what Cardan makes of each, as a table, one line per FMU with the reason.

    tests/foreign/run.py DIR [--cardan COMMAND] [--fmpy [PYTHON]] [--jobs N] [--json FILE]

Each FMU goes through
  info      its description is read
  build     it has no binary for Linux, and its sources are compiled (not in the table)
  check     a system of it is accepted
  alone     it runs, with the default options
  sine      it runs with a recorded sine on its first real, continuous input
  system    it runs in a system of two, a signal generator and the FMU
  isolated  it runs in a process of its own, with the same results to the last bit
  fmpy      FMPy gives the same results in the same fixed steps, to 1e-9 of each signal's size

The code of the FMUs runs in child processes only: with a time limit, limited memory, no core files and
an empty HOME. That is no sandbox: use a machine, or an account, where they may do harm.
"""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

STAGES = ("info", "check", "alone", "sine", "system", "isolated", "fmpy")
AGREES = 1e-9
MOST_STEPS = 1000
COMPILES = 660  # seconds, a little more than Cardan gives a compiler
LINUX = {"linux64", "x86_64-linux"} if platform.machine() == "x86_64" else {platform.machine() + "-linux"}

# Why an FMU cannot run whatever Cardan does: (word, part of the sentence).
NOT_OURS = (
    ("no binary for this platform", r"no binaries/|has no binaries|no library for"),
    ("a library is missing here", r"cannot open shared object file|version `\S+' not found"),
    ("no FMU", r"not a zip archive|no modelDescription\.xml|modelDescription\.xml:\d+"),
    ("needs the tool that made it", r"needs the tool"),
    ("its sources lack functions", r"cannot be linked .*undefined reference"),
    ("needs clocks", r"clocks of FMI 3"),
    ("Scheduled Execution only", r"only Scheduled Execution"),
)


# What FMPy says when the FMU itself refuses, not its library.
FMPY_REFUSED = r"Failed to instantiate|failed with status|not done in the time given|exit code -\d"


def command(arguments, folder, seconds, memory, environment=None):
    """Exit code, standard output, standard error; the code is None when the time was over."""
    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 5, int(seconds) + 6))

    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    with subprocess.Popen(arguments, cwd=folder, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                          preexec_fn=limit,
                          env=dict(os.environ, HOME=home, TMPDIR=folder, **(environment or {}))) as p:
        try:
            out, err = p.communicate(timeout=seconds)
            return p.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            return None, out, err


def reason(code, err):
    """The sentence that says why, or what is known of the end."""
    if code is None:
        return "not done in the time given"
    lines = [l[8:] for l in err.splitlines() if l.startswith("cardan: ")]
    lines = [l for l in lines if not l.startswith(("warning: ", "info: ", "debug: "))]
    if lines:
        return lines[-1]
    return f"died of signal {-code}" if code < 0 else f"exit code {code}"


class Fmu:
    """One FMU on its way through the stages."""

    def __init__(self, path, o):
        self.path, self.o = path, o
        self.row = {"fmu": path, "stages": {}}
        self.folder = tempfile.mkdtemp(prefix="foreign_", dir=o.scratch)
        self.first = None  # why, of the first stage that failed
        self.tool = False  # it says that it needs the tool that made it

    def cardan(self, stage, *arguments, seconds=None):
        code, out, err = command([self.o.cardan, *arguments], self.folder,
                                 seconds or self.o.seconds, self.o.memory)
        done = code in (0, 3)  # 3: a limit was not kept, which is a judgement
        self.note(stage, "ok" if done else "failed", None if done else reason(code, err))
        return out if done else None

    def note(self, stage, word, why=None):
        self.row["stages"][stage] = {"result": word, **({"reason": why} if why else {})}
        if why and not self.first:
            self.first = why

    def times(self, info):
        """start, stop, step: those of NAME_ref.opt beside it (as fmi-cross-check has them), else those of
        the description; at most MOST_STEPS of them."""
        e = dict(info.get("default_experiment") or {}, **self.reference_times())
        start = e.get("start") or 0.0
        stop = e.get("stop")
        stop = start + 1 if stop is None or stop <= start else stop
        step = e.get("step") or (stop - start) / 500
        inner = (info.get("capabilities") or {}).get("fixed_internal_step") or 0
        if inner > 0:
            step = min(10, max(1, round(step / inner))) * inner
        steps = min(MOST_STEPS, max(1, math.floor((stop - start) / step + 1e-9)))
        return start, start + steps * step, step

    def reference_times(self):
        found = {}
        try:
            with open(self.path[:-4] + "_ref.opt", encoding="utf-8", errors="replace") as f:
                for line in f:
                    m = re.match(r"(Start|Stop)Time,\s*([-+.\deE]+)|(Step)Size,\s*([-+.\deE]+)", line)
                    if m:
                        found[(m[1] or m[3]).lower()] = float(m[2] or m[4])
        except (OSError, ValueError):
            return {}
        return {k: v for k, v in found.items() if k != "step" or v > 0}

    def description(self):
        out = self.cardan("info", "info", self.path, "--json")
        try:
            info = json.loads(out) if out else None
        except ValueError:
            self.note("info", "failed", "its JSON cannot be read")
            return None
        if info:
            self.row["fmi"] = info.get("fmi_version")
            self.row["tool"] = info.get("generation_tool")
        return info

    def run(self, stage, subject, result, *more):
        start, stop, step = self.when
        return self.cardan(stage, "run", subject, "-q", "-o", result, "--start-time", repr(start),
                           "--stop-time", repr(stop), "--step", repr(step), *self.o.in_process, *more)

    def go(self):
        info = self.description()
        if info:
            self.when = self.times(info)
            self.tool = (info.get("capabilities") or {}).get("needs_execution_tool")
            if info.get("sources") and not set(info.get("platforms", [])) & LINUX:
                self.cardan("build", "build", self.path, "--output", "built.fmu", seconds=COMPILES)
            self.cardan("check", "check", self.path)
            self.run("alone", self.path, "alone.csv")
            inputs = [v for v in info.get("variables", []) if v.get("causality") == "input" and
                      v.get("type") == "Float64" and v.get("variability", "continuous") == "continuous"
                      and not v.get("dimensions")]
            if inputs:
                self.with_sine(inputs[0])
                self.in_system(inputs[0])
            if self.o.isolation:
                self.isolated()
            if self.o.fmpy and info.get("cosimulation"):
                self.fmpy()
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.judge()

    @staticmethod
    def middle(v):
        try:
            return float(v.get("start") or 0)
        except (TypeError, ValueError):
            return 0.0

    def with_sine(self, v):
        start, stop, _ = self.when
        at = self.middle(v)
        with open(os.path.join(self.folder, "sine.csv"), "w", encoding="utf-8", newline="") as f:
            w = csv.writer(f)
            w.writerow(["time", v["name"]])
            for i in range(201):
                t = start + (stop - start) * i / 200
                w.writerow([repr(t), repr(at + 0.1 * (abs(at) or 1) * math.sin(0.1 * math.pi * i))])
        self.run("sine", self.path, "sine_out.csv", "--input", "sine.csv")

    def in_system(self, v):
        start, stop, _ = self.when
        at = self.middle(v)
        system = {"cardan": 1,
                  "units": {"fmu": {"fmu": self.path},
                            "signal": {"signal": {"shape": "sine", "amplitude": 0.1 * (abs(at) or 1),
                                                  "offset": at, "frequency": 10 / (stop - start)}}},
                  "connections": [{"from": "signal.y", "to": "fmu." + v["name"]}]}
        with open(os.path.join(self.folder, "system.yaml"), "w", encoding="utf-8") as f:
            json.dump(system, f)  # which is YAML
        self.run("system", "system.yaml", "system.csv")

    def isolated(self):
        if self.run("isolated", self.path, "isolated.csv", *self.o.isolation) is None:
            return
        if self.row["stages"]["alone"]["result"] == "ok":
            with open(os.path.join(self.folder, "alone.csv"), "rb") as a, \
                    open(os.path.join(self.folder, "isolated.csv"), "rb") as b:
                if a.read() != b.read():
                    self.note("isolated", "differs", "isolated it gives other results")

    def fmpy(self):
        start, stop, step = self.when
        built = os.path.join(self.folder, "built.fmu")
        path = built if os.path.exists(built) else self.path
        code, _, err = command([self.o.fmpy, "-B", os.path.abspath(__file__), "--as-fmpy", path,
                                repr(start), repr(stop), repr(step), "fmpy.csv"], self.folder,
                               self.o.seconds, self.o.memory)
        ours = self.row["stages"]["alone"]["result"] == "ok"
        if code != 0:
            last = (err.strip().splitlines() or [""])[-1]
            said = "not done in the time given" if code is None else last[:200] or f"exit code {code}"
            # no reason of ours: it is not our result
            self.row["stages"]["fmpy"] = {"result": "fails too" if not ours else "fails there",
                                          "said": said}
        elif not ours:
            self.row["stages"]["fmpy"] = {"result": "runs there"}
        else:
            worst, name = distance(os.path.join(self.folder, "alone.csv"),
                                   os.path.join(self.folder, "fmpy.csv"))
            self.row["stages"]["fmpy"] = {"result": "agrees" if worst <= AGREES else "differs",
                                          "difference": worst, "signal": name}

    def judge(self):
        """runs, fails, or cannot run here; and the reason."""
        stages = self.row["stages"]
        tried = [s for s in ("check", "alone", "sine", "system") if s in stages]
        if tried and all(stages[s]["result"] == "ok" for s in tried):
            self.row["verdict"] = "runs"
        else:
            self.row["reason"] = self.first or "unknown"
            words = [w for w, part in NOT_OURS if re.search(part, self.row["reason"])]
            if self.tool:
                words.append("needs the tool that made it")
            there = stages.get("fmpy", {})
            if there.get("result") == "fails too" and re.search(FMPY_REFUSED, there.get("said", "")):
                words.append("FMPy cannot run it either")
            self.row["verdict"] = words[0] if words else "fails"
        return self.row


def table_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f))
    columns = {}
    for k, name in enumerate(rows[0]):
        try:
            columns[name] = [float({"true": 1, "false": 0}.get(r[k].lower(), r[k])) for r in rows[1:]]
        except ValueError:
            pass  # a text
    return columns


def distance(a, b):
    """Largest difference of signals that both have, of the size of each, and where it is."""
    a, b = table_of(a), table_of(b)
    worst, where = 0.0, None
    rows = {round(t, 9): k for k, t in enumerate(b["time"])}  # the last one: events have several
    try:
        rows = [rows[round(t, 9)] for t in a["time"]]
    except KeyError as t:
        return math.inf, f"there is no row at {t} s"
    for name in a:
        if name == "time" or name not in b:
            continue
        size = max([abs(x) for x in a[name] + b[name] if math.isfinite(x)] or [0]) or 1
        for x, y in zip(a[name], (b[name][k] for k in rows)):
            same = x == y or (math.isnan(x) and math.isnan(y))
            d = 0.0 if same else abs(x - y) / size
            if not d <= worst:
                worst, where = (d if math.isfinite(d) else math.inf), name
    return worst, where


def same_steps(step):
    """FMPy makes steps as long as two times are apart, which differs from the step by rounding, and
    solvers with a grid of their own then make one step more or less. Both are right; here all are equal."""
    import fmpy.fmi1  # pylint: disable=import-outside-toplevel
    import fmpy.fmi2  # pylint: disable=import-outside-toplevel
    import fmpy.fmi3  # pylint: disable=import-outside-toplevel

    def exact(call):
        def do_step(self, currentCommunicationPoint, communicationStepSize, *rest, **more):
            near = math.isclose(communicationStepSize, step, rel_tol=1e-6)
            return call(self, currentCommunicationPoint, step if near else communicationStepSize,
                        *rest, **more)
        return do_step

    for kind in (fmpy.fmi1.FMU1Slave, fmpy.fmi2.FMU2Slave, fmpy.fmi3.FMU3Slave):
        kind.doStep = exact(kind.doStep)


def with_its_name(folder, identifier):
    """The only library there is the one, whatever it is called (Cardan takes it, too)."""
    for place in LINUX:
        there = os.path.join(folder, "binaries", place)
        names = [n for n in (os.listdir(there) if os.path.isdir(there) else []) if n.endswith(".so")]
        if len(names) == 1 and names[0] != identifier + ".so":
            shutil.copy(os.path.join(there, names[0]), os.path.join(there, identifier + ".so"))
    return folder


def as_fmpy(path, start, stop, step, out):
    """In a process of its own: what FMPy makes of the FMU in fixed steps."""
    import fmpy  # pylint: disable=import-outside-toplevel
    start, stop, step = float(start), float(stop), float(step)
    same_steps(step)
    d = fmpy.read_model_description(path, validate=False)
    path = with_its_name(fmpy.extract(path), d.coSimulation.modelIdentifier)
    names = [v.name for v in d.modelVariables if v.causality == "output" and not v.dimensions and
             v.type not in ("String", "Binary", "Clock")]
    more = {}
    if d.fmiVersion.startswith("3") and d.coSimulation.hasEventMode:
        more = {"use_event_mode": True, "early_return_allowed": True}
    try:
        r = fmpy.simulate_fmu(path, validate=False, start_time=start, stop_time=stop, step_size=step,
                              output_interval=step, fmi_type="CoSimulation", output=names,
                              set_stop_time=True, **more)
    except Exception:
        if not more:
            raise
        r = fmpy.simulate_fmu(path, validate=False, start_time=start, stop_time=stop, step_size=step,
                              output_interval=step, fmi_type="CoSimulation", output=names)
    with open(out, "w", encoding="utf-8", newline="") as f:
        w = csv.writer(f)
        w.writerow(r.dtype.names)
        w.writerows([[repr(float(x)) for x in row] for row in r])


def find_fmus(folder):
    found = [os.path.join(root, f) for root, _, files in os.walk(os.path.abspath(folder))
             for f in files if f.endswith(".fmu")]
    return sorted(found)


def show(rows, folder, out):
    widths = {s: max(len(s), 6) for s in STAGES}
    print("  ".join(f"{s:{widths[s]}}" for s in STAGES) + "  fmi   fmu", file=out)
    for r in rows:
        cells = [r["stages"].get(s, {"result": "-"})["result"] for s in STAGES]
        line = "  ".join(f"{c[:max(widths[s], 11)]:{widths[s]}}" for s, c in zip(STAGES, cells))
        print(f"{line}  {(r.get('fmi') or '-'):4.4}  {os.path.relpath(r['fmu'], folder)}", file=out)
        if r["verdict"] != "runs":
            print(f"    {r['verdict']}: {r['reason'][:300]}", file=out)
        for s, part in r["stages"].items():
            if s in ("isolated", "fmpy") and part["result"] not in ("ok", "agrees"):
                said = part.get("reason") or part.get("said") or ""
                if said == r.get("reason"):
                    continue
                if "difference" in part:
                    said = f"{part['signal']} by {part['difference']:.2g} of its size"
                print(f"    {s}: {part['result']} {said[:300]}", file=out)


def total(rows):
    counts = {}
    for r in rows:
        counts[r["verdict"]] = counts.get(r["verdict"], 0) + 1
    here = counts.get("runs", 0) + counts.get("fails", 0)
    fmpy = {}
    for r in rows:
        word = r["stages"].get("fmpy", {}).get("result")
        if word:
            fmpy[word] = fmpy.get(word, 0) + 1
    return {"fmus": len(rows), "runnable": here, "run": counts.get("runs", 0), "verdicts": counts,
            "fmpy": fmpy}


def show_total(t, out):
    share = 100 * t["run"] / t["runnable"] if t["runnable"] else 100
    print(f"\n{t['fmus']} FMUs, {t['runnable']} can run here, {t['run']} do: {share:.1f} %", file=out)
    for word, n in sorted(t["verdicts"].items(), key=lambda x: -x[1]):
        if word not in ("runs", "fails"):
            print(f"  {n:4} {word}", file=out)
    if t["fmpy"]:
        print("  FMPy: " + ", ".join(f"{n} {w}" for w, n in sorted(t["fmpy"].items())), file=out)
    return share


def read_options(arguments):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--cardan", default=os.environ.get("CARDAN", "cardan"), help="the command")
    p.add_argument("--fmpy", nargs="?", const=sys.executable, metavar="PYTHON",
                   help="compare with FMPy, as this Python has it")
    p.add_argument("--jobs", type=int, default=1, metavar="N")
    p.add_argument("--json", metavar="FILE", help="all of it")
    p.add_argument("--seconds", type=float, default=60, help="time limit of each run")
    p.add_argument("--memory", type=float, default=16, metavar="GB", help="address space of each run, 0: no limit")
    p.add_argument("--match", default="", metavar="REGEX", help="only FMUs whose path fits")
    p.add_argument("--at-least", type=float, metavar="PERCENT",
                   help="exit code 1 if a smaller share of those that can run here does")
    o = p.parse_args(arguments)
    o.cardan = shutil.which(o.cardan) or o.cardan
    o.cardan = os.path.abspath(o.cardan)
    o.memory = int(o.memory * 1e9)
    shown = subprocess.run([o.cardan, "help", "run"], capture_output=True, text=True, check=True)
    has = "--isolate" in shown.stdout
    o.in_process = ["--isolate", "none"] if has else []
    o.isolation = ["--isolate", "all"] if has else []
    return o


def main(arguments):
    if arguments[:1] == ["--as-fmpy"]:
        as_fmpy(*arguments[1:])
        return 0
    o = read_options(arguments)
    fmus = [f for f in find_fmus(o.folder) if re.search(o.match, f)]
    with tempfile.TemporaryDirectory(prefix="foreign_") as o.scratch:
        with concurrent.futures.ThreadPoolExecutor(max(1, o.jobs)) as pool:
            rows = list(pool.map(lambda path: Fmu(path, o).go(), fmus))
    show(rows, o.folder, sys.stdout)
    t = total(rows)
    share = show_total(t, sys.stdout)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"total": t, "fmus": rows}, f, indent=1)
    return 1 if o.at_least is not None and share < o.at_least else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
