#!/usr/bin/env python3
"""The hybrid car, engine and machine 60 ms away each way, with elements that know the commands:
golden_commands.py EXAMPLES CYCLES

Judged after 20 s of learning, against the car itself: what is left of the error of a hold; and, over the
round trip, how far the torque at the car's shaft is from that of the car without latency. With 0.3 % of noise
on recordings of the same car, too. CYCLES/wltc3b.csv comes from cmake/wltc.sh; without it 300 s of the NEDC, in
which the engine runs too late and too rarely to be judged, and the machine moves so little that this noise alone is
a tenth of a hold's error (0.13 of it is left there).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES, CYCLES = sys.argv[1:3]
sys.path.insert(0, os.path.join(HERE, "..", "golden"))
os.environ["CARDAN_SYSTEMS"] = EXAMPLES
import golden
import numpy as np
from golden import Checks

LEARNED = 20  # s
DRAWS = 2  # of noise: one says little
PARTS = ("engine", "machine")
DOWN = (("controller.pedal", "engine.pedal"), ("vehicle.shaft_speed", "engine.speed_ref"),
        ("controller.machine_torque", "machine.torque_ref"), ("vehicle.shaft_speed", "machine.speed_ref"),
        ("battery.voltage", "machine.voltage_ref"), ("oil.y", "machine.oil_ref"))
UP = (("engine.torque", "vehicle.engine_torque"), ("machine.torque", "vehicle.machine_torque"),
      ("engine.torque", "controller.engine_torque"), ("engine.torque_max", "controller.engine_torque_max"),
      ("machine.torque_max", "controller.machine_torque_max"), ("machine.power_dc", "battery.power"))
COMMANDS = {"engine": ("engine.pedal", "engine.speed_ref", "engine.run"),
            "machine": ("machine.torque_ref", "machine.speed_ref", "machine.voltage_ref")}
RECORDED = ("*.coupling.*error", "vehicle.*_torque", "engine.torque", "machine.torque", "engine.running",
            *(name for part in PARTS for name in COMMANDS[part]))
WLTC = os.path.join(os.path.abspath(CYCLES), "wltc3b.csv")
checks = Checks("the hybrid car with commands")


def connection(ends, element, way):
    source, target = ends
    return (f"  - {source} -> {target}\n",
            f"  - {{ from: {source}, to: {target}, coupling: {{ {element}, channel: {{ delay: {way} ms }} }} }}\n")


def drive(element, way=60):
    """The car with `element` on what comes back, held on the way there."""
    cycle = WLTC if os.path.exists(WLTC) else os.path.join(EXAMPLES, "nedc.csv")
    edits = [("replay: nedc.csv", f"replay: {cycle}"), ("stop: 1180 s", "stop: 300 s"),
             ("interval: 100 ms", "interval: 10 ms")]
    edits += [connection(ends, "algorithm: zoh", way) for ends in DOWN]
    edits += [connection(ends, element, way) for ends in UP]
    out = os.path.join(golden.TMP, "drive.csv")
    golden.cardan("run", golden.place("hybrid", "2", edits), "-q", "-o", out,
                  *(word for name in RECORDED for word in ("--variables", name)))
    return golden.parse(out)


def rms(x, t):
    return float(np.sqrt(np.mean(x[t >= LEARNED] ** 2)))


def shaft(run):
    return run["vehicle.engine_torque"] + run["vehicle.machine_torque"]


def noisy(run, part, latency, generator):
    """Error of the element on the recorded torque with noise, against the torque itself, of that of a hold."""
    y = run[part + ".torque"]
    rows = [run["time"], y + 0.003 * np.ptp(y) * generator.standard_normal(len(y))]
    names = COMMANDS[part]
    file, out = os.path.join(golden.TMP, "noisy.csv"), os.path.join(golden.TMP, "estimates.csv")
    np.savetxt(file, np.transpose(rows + [run[name] for name in names]), "%.9g", ",", comments="",
               header=",".join(("time", "y", *names)))
    golden.cardan("coupling", "compensate", file, "--signal", "y", "--latency", latency, "--algorithms", "zoh,commands", "-o",
                  out, *(word for name in names for word in ("--command", name)))
    found = golden.parse(out)
    with_commands, hold = (rms(found[f"y.{name}"] - y, found["time"]) for name in ("commands", "zoh"))
    return with_commands / hold


ideal, alone = drive("algorithm: zoh", 0), drive("algorithm: auto, commands: none")
known = drive("algorithm: commands, shadow: [zoh]")
whole = drive("algorithm: commands, target: round-trip")
t = ideal["time"]
random = np.random.default_rng(24)
for part, most in (("engine", 0.42), ("machine", 0.12)):
    if part == "engine" and not os.path.exists(WLTC):
        continue
    name = f"vehicle.{part}_torque.coupling."
    checks.below(f"{part}: of a hold's error", rms(known[name + "error"], t) / rms(known[name + "zoh.error"], t), most)
    for k in (6, 8) if os.path.exists(WLTC) else ():
        checks.below(f"{part}, noise, k = {k}: of a hold's error, mean of {DRAWS}",
                     sum(noisy(ideal, part, k, random) for _ in range(DRAWS)) / DRAWS, most)
    if os.path.exists(WLTC):
        name = f"vehicle.{part}_torque"
        checks.below(f"{part}, round trip: of the error of auto",
                     rms(whole[name] - ideal[name], t) / rms(alone[name] - ideal[name], t), 1 / 3)
checks.below("torque at the shaft, round trip: of the error of auto",
             rms(shaft(whole) - shaft(ideal), t) / rms(shaft(alone) - shaft(ideal), t), 1 / 3)
checks.end()
