#!/usr/bin/env python3
"""Write a system of many equal units with an output y and an input u, or u1, u2 ... in a mesh.

    make_large_system.py --units 100000 --fmu chain.fmu chain.yaml
    make_large_system.py --units 100000 --shape mesh --fmu mesh.fmu mesh.yaml
"""

import argparse
import random


SHAPES = ("chain", "ring", "pairs", "star", "mesh", "none")
INPUTS = 10  # of a unit in a mesh


def connections(shape, n, rng):
    """Pairs of a unit and an input that its y goes to."""
    if shape == "mesh":  # random, which makes one loop of nearly all of them
        for i in range(n):
            for k in range(INPUTS):
                yield rng.randrange(n), f"unit{i}.u{k + 1}"
    elif shape == "pairs":  # each a loop of two
        for i in range(n - n % 2):
            yield i ^ 1, f"unit{i}.u"
    elif shape == "star":  # all from the first
        for i in range(1, n):
            yield 0, f"unit{i}.u"
    elif shape != "none":
        if shape == "ring":
            yield n - 1, "unit0.u"
        for i in range(1, n):
            yield i - 1, f"unit{i}.u"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--units", type=int, required=True)
    p.add_argument("--shape", choices=SHAPES, default="chain")
    p.add_argument("--fmu", required=True)
    p.add_argument("--steps", type=int, default=1)
    p.add_argument("--keys", default="", help="more keys of run")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("system")
    a = p.parse_args()
    rng = random.Random(a.seed)
    with open(a.system, "w", encoding="utf-8") as f:
        f.write("cardan: 1\nunits:\n")
        f.writelines(f"  unit{i}: {{ fmu: {a.fmu} }}\n" for i in range(a.units))
        f.write("connections:\n" if a.shape != "none" else "")
        f.writelines(f"  - unit{i}.y -> {to}\n" for i, to in connections(a.shape, a.units, rng))
        f.write(f"run: {{ step: 1 ms, stop: {a.steps} ms{', ' if a.keys else ''}{a.keys} }}\n")


if __name__ == "__main__":
    main()
