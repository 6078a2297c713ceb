#!/usr/bin/env python3
"""A system of a unit that misbehaves and an honest one, for every kind of misbehaviour and place, run as a user would.

run.py --command build/cardan --libraries DIR --honest X.fmu [--isolate all] [--only REGEX] [-v]

What is checked of every run: it ends (the limit is enforced by SIGKILL), with the right exit code; a sentence names the unit,
the call and the time; rows up to then are in the file; the honest unit's columns have the same bytes as in a run with a unit
that behaves. The table says what can be expected in one process; apart from the master's process nothing is lost."""
import argparse
import concurrent.futures
import csv
import io
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

LIMIT = 40     # s, then the run hangs
PATIENCE = 12  # s between SIGTERM and the end
ASK_AFTER = 1  # s, where the unit never comes back

# What happens in one process:
#   told    exit 1; one sentence with unit, call and time
#   stopped exit 1; the run ends as by Ctrl-C, with a sentence
#   asked   it hangs until SIGTERM comes, then as told
#   limit   it hangs until the limit for loading and unloading, then as told
#   warned  exit 0; a warning names the unit and what it changed; all rows are right
#   fine    exit 0; all rows are right
#   failed  exit 1; the FMU's own failure is passed on
#   any     told or fine
#   lost    nobody can tell: only that it ends (the reason stands beside it)
CALLS = {"constructor": "the loading of its library", "instantiate": "Instantiate", "initialise": "EnterInitializationMode",
         "step": "DoStep", "terminate": "Terminate", "free": "FreeInstance", "destructor": "the unloading of its library",
         "get_state": "GetFMUstate", "set_state": "SetFMUstate", "free_state": "FreeFMUstate"}

ALL = ("constructor", "instantiate", "initialise", "step", "terminate", "free", "destructor")
TABLE = [  # kind, what happens, places, words or reason
    ("segv", "told", ALL, "Segmentation fault"),
    ("segv", "told", ("get_state", "set_state", "free_state"), "Segmentation fault"),
    ("abort", "told", ALL, "Aborted"),
    ("heap_overrun", "told", ALL, "Aborted|Segmentation fault"),
    ("double_free", "told", ALL, "Aborted"),
    ("bad_free", "told", ("step",), "Segmentation fault|Aborted"),
    ("stack_overflow", "told", ("constructor", "instantiate", "step", "terminate", "free"), "Segmentation fault"),
    ("bus", "told", ("step",), "Bus error"),
    ("fpe", "told", ("instantiate", "step"), "Floating point exception"),
    ("ill", "told", ("step",), "Illegal instruction, as code for a processor with more than this one has"),
    ("sigtrap", "told", ("step",), "Trace/breakpoint trap"),
    ("sigsys", "told", ("step",), "Bad system call"),
    ("sigpipe", "told", ("instantiate", "step"), "Broken pipe"),
    ("sigxcpu", "told", ("step",), "CPU time limit"),
    ("sigusr1", "told", ("step",), "User defined signal 1"),
    ("alarm", "told", ("step",), "Alarm clock"),
    ("vtalarm", "told", ("step",), "Virtual timer expired"),
    ("exit", "told", ALL, r"exit\(\)"),
    ("quick_exit", "told", ("step",), r"exit\(\)"),
    ("thread_segv", "told", ("instantiate", "initialise", "step", "terminate", "free"), "a thread that unit .*Segmentation fault"),
    ("thread_abort", "told", ("step",), "a thread .*Aborted"),
    ("thread_heap", "told", ("step",), "a thread .*(Aborted|Segmentation fault)"),
    ("thread_exit", "told", ("step",), r"a thread .*exit\(\)"),
    ("pthread_exit", "told", ("instantiate", "step", "terminate", "free"), "pthread_exit"),
    ("pthread_cancel", "told", ("step",), "pthread_exit"),
    ("longjmp", "any", ("step",), ""),
    ("own_handler_segv", "told", ("instantiate", "step"), "Segmentation fault"),
    ("log_bad_text", "told", ("step",), "Segmentation fault"),
    ("sigterm", "stopped", ("step",), "interrupted"),
    ("spin", "asked", ALL[1:-1], "did not come back"),
    ("sleep", "asked", ("instantiate", "step"), "did not come back"),
    ("spin", "limit", ("constructor", "destructor"), "did not come back"),
    ("atexit_spin", "limit", ("step",), "did not come back"),
    ("atexit_segv", "told", ("step",), "Segmentation fault"),
    ("block_all_spin", "asked", ("instantiate", "step"), "did not come back"),
    ("ignore_term_spin", "asked", ("instantiate", "step"), "did not come back"),
    ("pending", "asked", ("step",), "did not come back"),
    ("ignore_term", "warned", ("instantiate", "initialise", "step"), "signal handlers"),
    ("own_handler", "warned", ("constructor", "instantiate", "step"), "signal handlers"),
    ("block_all", "warned", ("instantiate", "step"), "signal mask"),
    ("fork_back", "warned", ("instantiate", "initialise", "step", "terminate", "free"), r"fork\(\)"),
    ("fork_exit", "fine", ("instantiate", "step"), ""),
    ("fork_segv", "fine", ("instantiate", "step"), ""),
    ("fork_under_exit", "fine", ("step",), ""),
    ("fesetround", "warned", ("constructor", "instantiate", "initialise", "step"), "rounding mode"),
    ("flush_to_zero", "warned", ("constructor", "instantiate", "initialise", "step"), "subnormal"),
    ("feenableexcept", "warned", ("constructor", "instantiate", "initialise", "step"), "floating-point control"),
    ("setlocale", "warned", ("constructor", "instantiate", "step"), "the locale"),
    ("uselocale", "warned", ("instantiate", "step"), "the locale"),
    ("chdir", "warned", ("constructor", "instantiate", "step"), "working directory"),
    ("umask", "warned", ("instantiate", "step"), "file mode mask"),
    ("dup_streams", "warned", ("instantiate", "step"), "standard output or error"),
    ("flags_of_streams", "warned", ("instantiate", "step"), "standard output or error"),
    ("close_files", "failed", ("step",), "Bad file descriptor"),
    ("close_all", "lost", ("step",), "standard error is closed, too"),
    ("fclose_stdout", "any", ("step",), ""),
    ("megabytes", "fine", ("instantiate", "step"), ""),
    ("memory", "any", ("instantiate", "step"), "out of memory|Cannot allocate|Cardan itself crashed|'bad'"),
    ("files", "any", ("instantiate", "step"), "Too many open files|'bad'"),
    ("threads", "any", ("instantiate", "step"), "a unit left behind|'bad'"),
    ("limit_files", "any", ("instantiate", "step"), "File too large"),
    ("log_null", "fine", ("instantiate", "step"), "a message"),
    ("log_one", "fine", ("instantiate", "initialise", "step"), "a message"),
    ("log_two", "fine", ("step", "terminate"), "a message"),
    ("log_n", "fine", ("step",), ""),
    ("log_thread", "any", ("step", "free"), "a unit left behind|bad"),
    ("warns", "fine", ("step",), "a message"),
    ("bogus_status", "failed", ("step", "initialise"), "no status"),
    ("negative_status", "failed", ("step",), "no status"),
    ("error", "failed", ("instantiate", "initialise", "step"), ""),
    ("fatal", "failed", ("initialise", "step"), "Fatal"),
    ("fatal_spin", "failed", ("step",), "Fatal"),
    ("nan", "failed", ("step",), "not a number"),
    ("names", "fine", ("step",), ""),
    ("own_malloc", "fine", ("instantiate", "step"), ""),
    ("infinity", "fine", ("step",), ""),
    ("mmx", "fine", ("instantiate", "step"), ""),
    ("log_flood", "fine", ("step",), ""),
    ("log_huge", "fine", ("step",), ""),
    ("unload", "any", ("step",), ""),
    ("environment", "lost", ("step",), "what is written over may be anything"),
    ("shrink_heap", "lost", ("step",), "the heap is everybody's"),
    ("direction", "lost", ("step",), "the processor's direction is everybody's"),
    ("alignment", "lost", ("step",), "so is what it makes of addresses: the next unit is blamed"),
    ("no_altstack", "lost", ("step",), "the handler has no stack"),
    ("no_tls", "lost", ("step",), "nor has it an errno"),
    ("no_system_calls", "lost", ("step",), "and cannot say anything"),
    ("no_clock", "lost", ("step",), "the clock is everybody's"),
    ("under_exit", "lost", ("constructor", "step"), "_exit ends the process before anybody is asked"),
    ("sigkill", "lost", ("instantiate", "step"), "SIGKILL cannot be caught"),
    ("sigstop", "lost", ("step",), "SIGSTOP cannot be caught"),
    ("block_all_segv", "lost", ("step",), "a fault whose signal is blocked kills"),
    ("thread_stack", "lost", ("step",), "a foreign thread has no stack for the handler"),
    ("scribble", "lost", ("step",), "what is written over may be anything"),
    ("fork_bomb", "lost", ("step",), "the processes are not ours"),
]
APART = [  # against the worker that it is shut in, and through it against the run: only with --isolate
    ("unmap", "told", ("step", "instantiate"), ""),
    ("other_memory", "any", ("step",), ""),
    ("no_writing", "told", ("step",), ""),
    ("zeros", "any", ("step", "instantiate"), ""),
    ("ones", "any", ("step", "instantiate"), ""),
    ("any_numbers", "any", ("step", "instantiate", "initialise", "terminate"), ""),
    ("escapes", "any", ("step", "instantiate"), ""),
    ("disturb", "any", ("step", "instantiate"), ""),
    ("hide", "orphan", ("step", "constructor"), ""),
    ("own_limits", "any", ("step", "instantiate"), ""),
    ("parent", "fine", ("step", "instantiate"), ""),
    ("own_code", "any", ("step",), ""),
    ("timers", "fine", ("step",), ""),
    ("leave_children", "fine", ("step", "instantiate"), ""),
    ("leave_files", "fine", ("step",), ""),
    ("priority", "fine", ("step", "instantiate"), ""),
    ("own_filter", "any", ("step",), ""),
    ("other_bed", "fine", ("step",), ""),
    ("first_thread_ends", "any", ("step",), ""),
    ("seals", "any", ("step", "instantiate"), ""),
    ("fill_shared", "any", ("step",), ""),
    ("punch", "any", ("step", "instantiate"), ""),
    ("answer_early", "any", ("step", "instantiate"), ""),
    ("clone_memory", "fine", ("step", "instantiate"), ""),
]
VERSION3 = {"segv", "abort", "heap_overrun", "exit", "spin", "log_null", "log_one", "log_two", "fesetround", "pthread_exit"}

DESCRIPTION2 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="hostile" guid="{1}" generationTool="somebody else" numberOfEventIndicators="0">
<CoSimulation modelIdentifier="hostile" canHandleVariableCommunicationStepSize="true" canGetAndSetFMUstate="true"/>
<ModelVariables>
<ScalarVariable name="u" valueReference="0" causality="input" variability="continuous"><Real start="0"/></ScalarVariable>
<ScalarVariable name="y" valueReference="1" causality="output" variability="continuous"><Real/></ScalarVariable>
</ModelVariables>
<ModelStructure><Outputs><Unknown index="2" dependencies=""/></Outputs>
<InitialUnknowns><Unknown index="2" dependencies=""/></InitialUnknowns></ModelStructure>
</fmiModelDescription>
"""
DESCRIPTION3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="hostile" instantiationToken="{1}" generationTool="somebody else">
<CoSimulation modelIdentifier="hostile" canHandleVariableCommunicationStepSize="true"/>
<ModelVariables>
<Float64 name="u" valueReference="0" causality="input" variability="continuous" start="0"/>
<Float64 name="y" valueReference="1" causality="output" variability="continuous"/>
</ModelVariables>
<ModelStructure><Output valueReference="1" dependencies=""/><InitialUnknown valueReference="1" dependencies=""/></ModelStructure>
</fmiModelDescription>
"""


class Case:
    def __init__(self, version, kind, what, place, words):
        self.version, self.kind, self.what, self.place, self.words = version, kind, what, place, words

    def __str__(self):
        return f"FMI {self.version} {self.kind} in {self.place}"


def cases(isolate):
    for kind, what, places, words in TABLE + (APART if isolate else []):
        for place in places:
            yield Case(2, kind, what, place, words)
            if kind in VERSION3 and not place.endswith("_state"):
                yield Case(3, kind, what, place, words)


def make_fmu(path, libraries, version, kind, place):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("modelDescription.xml", DESCRIPTION2 if version == 2 else DESCRIPTION3)
        folder = "linux64" if version == 2 else "x86_64-linux"
        info = zipfile.ZipInfo(f"binaries/{folder}/hostile.so")
        info.external_attr = 0o755 << 16
        name = "hostile_malloc" if kind == "own_malloc" else f"hostile{version}"
        with open(os.path.join(libraries, name + ".so"), "rb") as f:
            z.writestr(info, f.read())
        z.writestr("resources/order.txt", f"{kind} {place}\n")


SYSTEM = """cardan: 1
units:
  bad: { fmu: bad.fmu%s }
  good: { fmu: %s }
connections:
  - { from: good.%s, to: bad.u, convert_units: false }
run: { step: 10 ms, stop: 1 s%s }
"""


def limit_resources(kind):
    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if kind == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        if kind == "files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        if kind == "priority":  # as of a user who may run in real time, where we may say so
            try:
                resource.setrlimit(resource.RLIMIT_RTPRIO, (50, 50))
            except (ValueError, OSError):
                pass
        os.setsid()
    return apply


def ends_within(process, seconds):
    try:
        process.wait(timeout=seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


class Outcome:
    pass


def workers_of(folder):
    """Processes that have been started for a run in this folder, but for the run itself."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as f:
                if f"TMPDIR={folder}".encode() in f.read().split(b"\0") and os.readlink(f"/proc/{name}/exe").endswith("-worker"):
                    found.append(int(name))
        except OSError:
            pass
    return found


def leaves_orphan(p, folder):
    """The run is killed while its unit is busy; true: a worker lives on."""
    end = time.monotonic() + 3
    while time.monotonic() < end and len(workers_of(folder)) < 2:
        time.sleep(0.05)
    time.sleep(ASK_AFTER)
    p.kill()
    p.wait()
    end = time.monotonic() + 3
    while time.monotonic() < end and workers_of(folder):
        time.sleep(0.05)
    left = workers_of(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return bool(left)


def run_case(o, c, folder):
    """Runs it; the outcome has exit code, time, texts and the table of results."""
    make_fmu(os.path.join(folder, "bad.fmu"), o.libraries, c.version, c.kind, c.place)
    more = ", iterate: true" if c.place.endswith("_state") else ""
    with open(os.path.join(folder, "system.yaml"), "w", encoding="utf-8") as f:
        limit = "30 s" if c.what == "orphan" else "1 s" if any(c.kind == row[0] for row in APART) else "5 s"
        f.write(SYSTEM % (f", limit: {limit}, isolate: process" if o.isolate else "", o.honest, o.signal, more))
    command = [o.command, "run", "system.yaml", "-o", "r.csv", "--isolate", o.isolate or "none"]
    r = Outcome()
    begin = time.monotonic()
    with open(os.path.join(folder, "err"), "wb") as err:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=err)  # not subject to limits on files
        p = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=reader.stdin,
                             env=dict(os.environ, TMPDIR=folder), preexec_fn=limit_resources(c.kind))
        r.asked = False
        r.hangs = False
        r.orphan = c.what == "orphan" and leaves_orphan(p, folder)
        if c.what == "asked" or (c.kind == "sigstop" and not o.isolate):
            if not ends_within(p, ASK_AFTER):
                r.asked = True
                p.send_signal(signal.SIGTERM)
                p.send_signal(signal.SIGCONT)
        if not ends_within(p, PATIENCE if r.asked else LIMIT):
            r.hangs = True
        try:
            os.killpg(p.pid, signal.SIGKILL)  # with all that it made
        except ProcessLookupError:
            pass
        p.wait()
        r.blocking = os.get_blocking(reader.stdin.fileno())
        reader.stdin.close()
        if not ends_within(reader, 5):
            reader.kill()
    r.code, r.time = p.returncode, time.monotonic() - begin
    with open(os.path.join(folder, "err"), encoding="utf-8", errors="replace") as f:
        r.err = f.read()
    r.rows = []
    path = os.path.join(folder, "r.csv")
    if os.path.exists(path):
        with open(path, newline="", encoding="utf-8", errors="replace") as f:
            r.rows = list(csv.reader(io.StringIO(f.read())))
    return r


def good_columns(rows):
    keep = [i for i, name in enumerate(rows[0]) if name == "time" or name.startswith("good.")] if rows else []
    return [[row[i] for i in keep if i < len(row)] for row in rows]


def says(r, *patterns):
    """One line of standard error with all of them."""
    return any(all(re.search(p, line) for p in patterns) for line in r.err.splitlines())


def call_pattern(c):
    """A worker that is killed cannot say more than what it was asked for."""
    if c.kind == "pending":
        return "DoStep|GetStatus"
    return "(?i)" + ("loading of its library|instantiate" if c.place == "constructor" else
                     "unloading of its library|free" if c.place in ("free", "destructor") else CALLS[c.place])


def judge(o, c, r, reference):
    """What is wrong with the outcome, "" if nothing."""
    if r.hangs:
        return "hangs"
    if c.what == "orphan":
        return "a worker outlives the run" if r.orphan else "" if r.code == -signal.SIGKILL else f"exit code {r.code} before it was killed"
    what = c.what
    if o.isolate:  # apart from us everything can be told, and what it changes is its own
        what = "any" if what in ("lost", "warned", "limit", "asked", "told", "stopped") or c.kind == "close_files" else what
    if what == "lost":
        return ""
    wrong = []
    begun = c.place in ("step", "terminate", "free", "destructor", "get_state", "set_state", "free_state")
    whole = r.code == 0 or (c.place in ("terminate", "free", "destructor") and not c.place.endswith("_state"))
    if what in ("warned", "fine"):
        if r.code != 0:
            wrong.append(f"exit code {r.code}, expected 0")
        if c.words and not says(r, c.words, r"bad\b"):
            wrong.append(f"no line with '{c.words}' and the unit")
    elif what == "any":
        if r.code not in (0, 1):
            wrong.append(f"exit code {r.code}, expected 0 or 1")
        expected = call_pattern(c) if o.isolate and c.what in ("told", "asked", "limit", "lost") and "exit_" not in c.kind else ""
        words = r"'bad'|bad:|r\.csv" if o.isolate or not c.words else c.words
        if r.code == 1 and not says(r, words, expected):
            wrong.append(f"no sentence about the unit, '{expected}'")
    else:
        if r.code != 1:
            wrong.append(f"exit code {r.code}, expected 1")
        call = CALLS[c.place] if what in ("told", "asked", "limit") and c.kind not in ("atexit_spin", "atexit_segv", "pending") else ""
        when = "" if what in ("stopped", "failed") else "at the start|at t = |at the end"
        if not says(r, c.words, call, when, "" if what == "stopped" or c.kind == "close_files" else r"bad\b"):
            wrong.append(f"no sentence with '{c.words}', '{call}' and a time")
    if o.isolate and r.code == 1 and what == "any" and c.what in ("told", "lost") and not says(r, "bad", "at the start|at t = |at the end|after"):
        wrong.append("no sentence with unit and time")
    expected = good_columns(reference.rows)
    got = good_columns(r.rows)
    if c.kind in ("close_files", "limit_files") and not o.isolate:
        pass  # the file cannot be written any more; what was written before is there
    elif whole and c.place not in ("get_state", "set_state", "free_state"):
        if got != expected:
            wrong.append(f"{len(got)} rows, or others than the {len(expected)} of a run without misbehaviour")
    elif begun and c.place == "step":
        if got != expected[:len(got)]:
            wrong.append("the honest unit's values differ")
        if len(got) < 1 + 51:
            wrong.append(f"{len(got) - 1} rows, expected 51 at least")
    elif c.place.endswith("_state") and len(got) < 2:
        wrong.append("no rows")
    if c.kind == "warns" and (r.err.count("a message") != 1 or r.err.count("returned Warning") != 1):
        wrong.append(f"{r.err.count('a message')} and {r.err.count('returned Warning')} warnings, expected one of each")
    if not r.blocking:
        wrong.append("standard error does not block any more")
    if o.isolate and re.search(r"[\x00-\x08\x0b-\x1f\x7f]", r.err):
        wrong.append("control characters on the terminal")
    left = [n for n in os.listdir(r.folder) if n.startswith("cardan-")]
    if left and r.code in (0, 1) and c.kind not in ("limit_files", "memory"):
        wrong.append(f"left behind: {left}")
    return "; ".join(wrong)


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--command", required=True)
    a.add_argument("--libraries", required=True, help="folder of hostile2.so, hostile3.so and hostile_malloc.so")
    a.add_argument("--honest", required=True, help="an FMU that behaves")
    a.add_argument("--signal", default="phi1", help="an output of it")
    a.add_argument("--isolate", help="as the option of cardan run")
    a.add_argument("--only", default="", help="cases that match")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--long", action="store_true", help="also what waits for the limits of loading and unloading")
    a.add_argument("--short", action="store_true", help="every kind at its first place and in a step")
    a.add_argument("-v", "--verbose", action="store_true")
    o = a.parse_args()
    o.command, o.libraries, o.honest = map(os.path.abspath, (o.command, o.libraries, o.honest))
    root = tempfile.mkdtemp(prefix="hostile_")
    os.mkdir(os.path.join(root, "reference"))
    nobody = Case(2, "none", "fine", "none", "")
    reference = run_case(o, nobody, os.path.join(root, "reference"))
    if reference.code != 0 or len(reference.rows) != 102:
        sys.exit(f"the run without misbehaviour: exit code {reference.code}, {len(reference.rows)} lines\n{reference.err}")

    def do(c):
        folder = tempfile.mkdtemp(dir=root)
        r = run_case(o, c, folder)
        r.folder = folder
        wrong = judge(o, c, r, reference)
        shutil.rmtree(folder, ignore_errors=True)
        return c, r, wrong

    chosen = [c for c in cases(o.isolate) if re.search(o.only, str(c)) and (o.long or o.isolate or c.what != "limit") and
              not (c.kind == "fork_bomb" and not o.isolate)]
    if o.short:
        first = {}
        chosen = [c for c in chosen if first.setdefault((c.version, c.kind), c) is c or c.place == "step"]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for c, r, wrong in pool.map(do, chosen):
            bad += bool(wrong)
            if wrong or o.verbose:
                said = [line for line in r.err.splitlines() if "bad" in line]
                print(f"{'WRONG' if wrong else 'ok':5} {c} ({c.what}): exit {r.code}, {r.time:.1f} s, {len(r.rows) - 1} rows"
                      f"{': ' + wrong if wrong else ''}\n      {(said or r.err.splitlines() or [''])[-1][:240]}", flush=True)
    kinds = {c.kind for c in chosen}
    print(f"{len(chosen)} cases of {len(kinds)} kinds, {bad} wrong")
    shutil.rmtree(root, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
