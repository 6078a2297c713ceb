#!/usr/bin/env python3
"""Writes src/base/powers.h: the powers of ten that number.c multiplies with, cut to 128 bits.

    python3 cmake/powers.py > src/base/powers.h

It also proves what crdi_format_double takes for granted: no double comes so near to the middle
between two 17-digit decimals that the 128 leading bits of the product could round it wrongly.
"""
import sys
from fractions import Fraction

FIRST, LAST = -342, 340  # reading needs -342 .. 308, writing -292 .. 340


def power(q):
    """(hi, lo) of 10^q = (hi * 2^64 + lo) * 2^(floor(log2(10^q)) - 127), cut, not rounded."""
    e = exponent(q)
    if q >= 0:
        p = 10**q << 127 >> e if e <= 127 else 10**q >> (e - 127)
    else:
        p = (1 << (127 - e)) // 10**-q
    assert 1 << 127 <= p < 1 << 128
    return p >> 64, p & (1 << 64) - 1


def exponent(q):
    e = (10**q).bit_length() - 1 if q >= 0 else -(10**-q).bit_length()
    assert e == (q * 217706) >> 16, q  # the shortcut that number.c uses
    return e


def nearest(alpha, limit):
    """A lower bound of |M * alpha - N| over all integers 0 < M <= limit, N: of all fractions, the
    convergents come nearest (Lagrange)."""
    best, x = None, alpha
    p0, q0, p1, q1 = 0, 1, 1, 0
    while True:
        a = x.numerator // x.denominator
        p0, q0, p1, q1 = p1, q1, a * p1 + p0, a * q1 + q0
        if q1 > limit:
            return best
        best = abs(q1 * alpha - p1)
        if x == a:
            return best
        x = 1 / (x - a)


def prove():
    worst = None
    for e in range(-1074, 1024):  # the estimate of floor(log10(2^e)), at most one too low
        k = e * 78913 >> 18
        assert Fraction(10)**k <= Fraction(2)**e and Fraction(2)**(e + 1) <= Fraction(10)**(k + 2)
    for e in range(-1074, 972):  # value = m * 2^e, 0 < m < 2^53
        for k in {((e + b) * 78913 >> 18) + up for b in (range(0, 53) if e == -1074 else (52,))
                  for up in (0, 1)}:
            q = 16 - k
            if -23 <= q <= 27:
                continue  # 0..27: 10^q has 64 bits, exact. -23..-1: n/5^-q is far from any middle
            # m * 2^e * 10^q is n + 1/2 + d: then 2m times alpha is 2d away from an odd integer
            alpha = Fraction(2)**e * Fraction(10)**q
            d = nearest(alpha, 1 << 54) / 2
            # units of the last of the 128 bits: the product has its leading bit at 2^56 or below
            units = d * Fraction(2)**(127 - 56 - 1)
            worst = units if worst is None else min(worst, units)
            assert units > 2, (e, q, float(units))
    print("nearest to the middle: %.3g units, 2 are needed" % float(worst), file=sys.stderr)


def main():
    prove()
    print("// Powers of ten cut to 128 bits, made by cmake/powers.py. Do not edit.")
    print("#pragma once\n#include <stdint.h>\n")
    print("#define CRDI_POWER_FIRST (%d)\n#define CRDI_POWER_LAST %d\n" % (FIRST, LAST))
    print("// 10^q = (hi * 2^64 + lo) * 2^(floor(log2(10^q)) - 127)")
    print("static const struct crdi_power {\n    uint64_t hi, lo;\n} crdi_powers[] = {")
    for q in range(FIRST, LAST + 1):
        print("    {0x%016x, 0x%016x}, // %d" % (*power(q), q))
    print("};")


main()
