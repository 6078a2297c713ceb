#!/usr/bin/env python3
"""Write a system of many equal units: a chain, or a mesh of random connections.

    make_large_system.py --units 100000 --fmu chain.fmu chain.yaml
    make_large_system.py --units 100000 --inputs 10 --fmu mesh.fmu mesh.yaml
"""

import argparse
import random


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--units", type=int, required=True)
    p.add_argument("--inputs", type=int, default=0, help="u1, u2 ... of the FMU; 0: a chain of u")
    p.add_argument("--fmu", required=True)
    p.add_argument("--steps", type=int, default=1)
    p.add_argument("--extra", default="", help="more keys of run")
    p.add_argument("--file", help="results, none without it")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("system")
    a = p.parse_args()
    rng = random.Random(a.seed)
    with open(a.system, "w", encoding="utf-8") as f:
        f.write("cardan: 1\nunits:\n")
        f.writelines(f"  unit{i}: {{ fmu: {a.fmu} }}\n" for i in range(a.units))
        f.write("connections:\n")
        if a.inputs == 0:
            f.writelines(f"  - unit{i - 1}.y -> unit{i}.u\n" for i in range(1, a.units))
        for i in range(a.units if a.inputs else 0):
            for k in range(a.inputs):
                f.write(f"  - unit{rng.randrange(a.units)}.y -> unit{i}.u{k + 1}\n")
        f.write(f"run: {{ step: 1 ms, stop: {a.steps} ms{', ' if a.extra else ''}{a.extra} }}\n")
        if a.file:
            f.write(f"results: {{ file: {a.file}, variables: ['*.y'] }}\n")


if __name__ == "__main__":
    main()
