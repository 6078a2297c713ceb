#!/usr/bin/env python3
"""Proves what crdi_format_double takes for granted: no double comes so near to the middle between two
17-digit decimals that the 128 leading bits of its product with a power of ten could round it wrongly."""
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
            if -23 <= q <= 27:
                continue  # 0..27: 10^q has 64 bits, exact. -23..-1: n/5^-q is far from any middle
            # m * 2^e * 10^q is n + 1/2 + d: then 2m times alpha is 2d away from an odd integer
            alpha = Fraction(2)**e * Fraction(10)**q
            d = nearest(alpha, 1 << 54) / 2
            # units of the last of the 128 bits: the product has its leading bit at 2^56 or below
            units = d * Fraction(2)**(127 - 56 - 1)
            worst = units if worst is None else min(worst, units)
            assert units > 2, (e, q, float(units))
    for q in range(-342, 341):
        e = (10**q).bit_length() - 1 if q >= 0 else -(10**-q).bit_length()
        assert e == (q * 217706) >> 16, q  # floor(log2(10^q))
    print("nearest to the middle: %.3g units, 2 are needed" % float(worst))


prove()
