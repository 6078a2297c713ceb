#!/usr/bin/env python3
"""peers.py CARDAN FMUS SCRATCH: the chain of N trivial FMUs (FMI 2.0, fixed-step Jacobi, one real
signal per connection, no recording) in Cardan and in the masters that are installed. Prints
"name us-per-FMU-and-step", Cardan first. Only the steps are timed, not the start."""
import json
import os
import subprocess
import sys
import time

N, STEP = 100, 1e-3


def best(run, repeats=3):
    return min(run() for _ in range(repeats))


def cardan(command, fmu, scratch, steps):
    lines = ["cardan: 1", "units:"]
    lines += [f"  u{i}: {{ fmu: {os.path.abspath(fmu)} }}" for i in range(N)]
    lines += ["connections:"] + [f"  - u{i}.y -> u{i + 1}.u" for i in range(N - 1)]
    lines += [f"run: {{ step: {STEP}, stop: {steps * STEP}, threads: 1, predict: hold, isolate: none }}"]
    path = os.path.join(scratch, "peers.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    out = subprocess.run([command, "run", path, "--output", "none", "--json", "--quiet"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["wall_time"]


def fmpy_loop(fmu, steps):
    from fmpy import extract, read_model_description
    from fmpy.fmi2 import FMU2Slave
    description = read_model_description(fmu)
    folder = extract(fmu)
    refs = {v.name: v.valueReference for v in description.modelVariables}
    units = []
    for i in range(N):
        u = FMU2Slave(guid=description.guid, unzipDirectory=folder, instanceName=f"u{i}",
                      modelIdentifier=description.coSimulation.modelIdentifier)
        u.instantiate()
        u.setupExperiment(startTime=0.0)
        u.enterInitializationMode()
        u.exitInitializationMode()
        units.append(u)
    begin = time.perf_counter()
    for k in range(steps):
        values = [u.getReal([refs["y"]])[0] for u in units[:-1]]
        for u, v in zip(units[1:], values):
            u.setReal([refs["u"]], [v])
        for u in units:
            u.doStep(currentCommunicationPoint=k * STEP, communicationStepSize=STEP)
    return time.perf_counter() - begin


def libcosim(fmu, steps):
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimSlave import CosimLocalSlave
    log_output_level(CosimLogLevel.ERROR)
    run = CosimExecution.from_step_size(STEP * 1e9)
    index = [run.add_local_slave(CosimLocalSlave(fmu_path=fmu, instance_name=f"u{i}"))
             for i in range(N)]
    refs = {v.name.decode(): v.reference for v in run.slave_variables(index[0])}
    for a, b in zip(index, index[1:]):
        run.connect_real_variables(a, refs["y"], b, refs["u"])
    run.step(1)
    begin = time.perf_counter()
    run.step(steps)
    return time.perf_counter() - begin


def main():
    command, fmus, scratch = sys.argv[1:4]
    fmu = os.path.join(fmus, "fmi2", "chain.fmu")
    os.makedirs(scratch, exist_ok=True)
    rows = [("cardan", lambda n: cardan(command, fmu, scratch, n), 40000),
            ("libcosim", lambda n: libcosim(fmu, n), 4000),
            ("fmpy", lambda n: fmpy_loop(fmu, n), 400)]
    for name, run, steps in rows:
        try:
            seconds = best(lambda: run(steps))
        except Exception as e:  # a peer that is not there or does not start is left out
            print(f"{name} left out: {e}", file=sys.stderr)
            continue
        print(name, seconds / (N * steps) * 1e6, flush=True)


if __name__ == "__main__":
    main()
