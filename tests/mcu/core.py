"""libcardan-core for the host or a board, and programs with it."""
import os
import re
import signal
import socket
import subprocess

import boards

ROOT = os.path.join(boards.HERE, "..", "..")
CONTROLLER = os.path.join(ROOT, "examples", "controller")
CPUS = {"m4": "cortex-m4", "m7": "cortex-m7"}
LAN9118 = {"m4": "0x40200000u", "m7": "0xa0000000u"}
CARDAN = os.environ.get("CARDAN", "cardan")


def library(target, single=False):
    """Built where the last one was: the archive and its one object."""
    folder = os.path.join(os.environ["CARDAN_TMP"], "core_" + target + "_single" * single)
    options = ["-DCMAKE_C_COMPILER=" + os.environ.get("CC", "cc")] if target == "host" else [
        "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "cortex.cmake"), "-DCPU=" + CPUS[target]]
    options.append("-DCARDAN_CORE_SINGLE=%d" % single)
    boards.checked(["cmake", "-G", "Ninja", "-S", os.path.join(ROOT, "src", "core"), "-B", folder, "-DCMAKE_C_FLAGS=-Werror", *options]
                   if target == "host" else
                   ["cmake", "-G", "Ninja", "-S", os.path.join(ROOT, "src", "core"), "-B", folder, *options])
    boards.checked(["ninja", "-C", folder])
    return os.path.join(folder, "libcardan-core.a"), os.path.join(folder, "cardan_core.o")


def flags_of(single):
    return ["-I", os.path.join(ROOT, "include")] + ["-DCARDAN_CORE_SINGLE"] * single


def build_elements(target, output, own=False, single=False):
    """With the same functions of <math.h> on all machines: then bits can be compared. own: with those of the C library."""
    archive, _ = library(target, single)
    math = [] if own else [os.path.join(boards.HERE, "functions.c"), "-fno-builtin"]
    boards.build(target, [os.path.join(boards.HERE, "elements.c"), archive, *math], output, flags_of(single))


class Row:
    def __init__(self, line):
        self.name, rest = line.split(";", 1)
        values, cost = rest.rsplit(";", 1)
        values = values.split()
        self.memory = int(boards.numbers(values[0])[0])
        self.said = values[1:]
        self.instructions = int(boards.numbers(cost)[0])


def apart(row, other):
    """The largest difference of what two say, of the largest value."""
    ours, theirs = boards.numbers(" ".join(row.said)), boards.numbers(" ".join(other.said))
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / max(map(abs, theirs))


# How far elements in single precision may be from those in double, of the largest value. What learns adds up what it rounds.
SINGLE = {"rls": 1e-3, "auto, 1 command": 1e-5, "auto, 2 commands": 1e-4, "auto, compact": 1e-5}


def rows(text):
    return [Row(line) for line in text.splitlines()]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def export_slave(folder, path):
    name = os.path.splitext(os.path.basename(path))[0]
    boards.checked([CARDAN, "export", "c", path, "--name", name, "-o", os.path.join(folder, name + ".c")])
    return os.path.join(folder, name + ".c")


def build_whole(target, folder, flags=(), single=False, **sizes):
    program = os.path.join(folder, "whole_" + target)
    slave = export_slave(folder, os.path.join(boards.HERE, "data", "rotor.dcpx"))
    boards.build(target, [os.path.join(boards.HERE, "whole.c"), slave, library(target, single)[0]], program,
                 [*flags_of(single), "-I", folder, *flags], **sizes)
    return program


def build_drive(target, folder, port, memory=24 << 10):
    """The drive of examples/controller for a board, or for the host with its own port."""
    archive, _ = library(target)
    sources = [os.path.join(CONTROLLER, "main.c"), export_slave(folder, os.path.join(CONTROLLER, "drive.dcpx"))]
    flags = ["-I", os.path.join(ROOT, "include"), "-I", CONTROLLER, "-I", folder, "-DDRIVE_MEMORY=%d" % memory]
    program = os.path.join(folder, "drive_" + target)
    if target == "host":
        boards.checked([os.environ.get("CC", "cc"), *boards.COMMON, *sources, os.path.join(CONTROLLER, "port_posix.c"), archive, *flags,
                        "-lm", "-o", program])
    else:
        boards.build(target, [*sources, os.path.join(boards.HERE, "drive_mps2.c"), archive], program,
                     [*flags, "-DDRIVE_PORT=%d" % port, "-DLAN9118=" + LAN9118[target]], flash=128 << 10, ram=32 << 10, stack=10 << 10)
    return program


SYSTEM = """cardan: 1
units:
  drive:
    dcp: "udp://127.0.0.1:%d"
    description: %s
    session: { mode: nrt }
    bench: { case: "speed -200..200 rad/s; torque -%g..%g N.m" }
  driver: { signal: { shape: sine, amplitude: 12, frequency: 2 Hz, unit: N.m } }
connections:
  - driver.y -> drive.torque_ref
run: { step: 5 ms, stop: 1 s }
results: %s
"""


def run_drive(target, program, folder, port, torque=15):
    """What cardan run has recorded, with the program as its slave, what that said, and the run."""
    results, system = os.path.join(folder, target + ".csv"), os.path.join(folder, target + ".yaml")
    with open(system, "w", encoding="utf-8") as f:
        f.write(SYSTEM % (port, os.path.join(CONTROLLER, "drive.dcpx"), torque, torque, results))
    command = [program]
    if target != "host":
        # The board's clock is that of the host here: what a stop takes does not hang on this machine's speed.
        command = [c for c in boards.command(target, program) if c not in ("-icount", "shift=0")]
        command += ["-nic", "user,model=lan9118,hostfwd=udp:127.0.0.1:%d-10.0.2.15:%d" % (port, port)]
    slave = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "DRIVE_PORT": str(port), "DRIVE_ONCE": "1"})
    try:
        run = subprocess.run([CARDAN, "run", system], capture_output=True, text=True, timeout=240, check=False)
        said = slave.communicate(timeout=60 if run.returncode == 0 else 1)[0]
    except subprocess.TimeoutExpired:
        slave.send_signal(signal.SIGKILL)
        said = slave.communicate()[0]
    if not os.path.exists(results):
        raise AssertionError("%s\n%s" % (run.stderr[-2000:], said[-2000:]))
    with open(results, encoding="utf-8") as f:
        return f.read(), said, run


# word, what export c is told, CRD_METHOD_, taps
ELEMENTS = [("zoh", "{algorithm: zoh, detect: none}", "ZOH", 1, 0), ("foh", "{algorithm: foh, detect: none}", "FOH", 2, 5), ("eros", "{algorithm: eros, detect: none}", "EROS", 9, 3),
            ("moment", "{algorithm: moment, taps: 12, detect: none}", "MOMENT", 12, 4),
            ("wiener", "{algorithm: wiener, taps: 26, detect: none}", "WIENER", 26, 6)]


def export_element(folder, subject, latency, *options):
    return boards.checked([CARDAN, "export", "c", subject, "--step", "%r" % (1 / 1024), "--latency", str(latency), "--name", "element",
                           "-o", os.path.join(folder, "element.c"), *options])


def run_element(target, folder, flags=(), more=()):
    program = os.path.join(folder, "element_" + target)
    boards.build(target, [os.path.join(boards.HERE, "element.c"), os.path.join(folder, "element.c"), *more], program, ["-I", folder, *flags])
    return [boards.numbers(line) for line in boards.run(target, program).splitlines()]


def undefined(obj, nm="nm"):
    return {line.split()[-1] for line in boards.checked([nm, "-u", obj]).splitlines() if line.strip()}


def sources():
    with open(os.path.join(ROOT, "src", "core", "sources.cmake"), encoding="utf-8") as f:
        names = re.findall(r"[\w/]+\.c\b", f.read())
    return [os.path.join(ROOT, "src", name) for name in names]
