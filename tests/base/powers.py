#!/usr/bin/env python3
"""Proves what crdi_format_double takes for granted: no double, no middle between two doubles and no end of the
interval below a power of two comes so near to a 17-digit decimal, or to the middle between two of them, that
what is cut off its product with a power of ten could put it on the wrong side."""
from fractions import Fraction


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
            # M * alpha near an integer: x is M = 4m, the middles above and below it are 4m +- 2, the
            # end below a power of two 4m - 1. 2x near one: x near the middle between two decimals
            alpha = Fraction(2)**(e - 2) * Fraction(10)**q
            if -23 <= q <= 27:  # integers are met; what is none is a whole part of one away
                units = Fraction(1, 2 * alpha.denominator)
            else:
                units = min(nearest(alpha, (1 << 55) + 2), nearest(8 * alpha, 1 << 53) / 2)
            units *= Fraction(2)**70  # bits behind the point
            worst = units if worst is None else min(worst, units)
            assert units > 4, (e, q, float(units))
    for q in range(-342, 341):
        e = (10**q).bit_length() - 1 if q >= 0 else -(10**-q).bit_length()
        assert e == (q * 217706) >> 16, q  # floor(log2(10^q))
    print("nearest: %.3g units, 4 are needed" % float(worst))


prove()
