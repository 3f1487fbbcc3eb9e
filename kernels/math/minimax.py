#!/usr/bin/env python3
"""Computes the polynomials of the math library and prints kernels/math/coefficients.h.

Each polynomial is the minimax approximation of a function on an interval, with a weight that makes
the error relative to the function that it serves. Lawson's iteration in 60 digits; coefficients are
rounded one by one, from the constant term on, with the rest fitted again after each rounding.

Usage: pip install mpmath; ./minimax.py > coefficients.h
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def lawson(points, powers, targets, weights, rounds):
    """Coefficients c minimising max_i |weights_i (sum_j c_j points_i^powers_j - targets_i)|.

    Lawson's iteration: least squares, where each point counts in proportion to its past errors.
    """
    n = len(powers)
    rows = [[w * x**p for p in powers] for x, w in zip(points, weights)]
    right = [w * y for y, w in zip(targets, weights)]
    share = [mp.mpf(1)] * len(points)
    best, best_error = None, None
    for _ in range(rounds):
        matrix = mp.matrix(n, n)
        vector = mp.matrix(n, 1)
        for row, y, s in zip(rows, right, share):
            scaled = [s * v for v in row]
            for i in range(n):
                vector[i] += scaled[i] * y
                for j in range(i, n):
                    matrix[i, j] += scaled[i] * row[j]
        for i in range(n):
            for j in range(i):
                matrix[i, j] = matrix[j, i]
        c = mp.lu_solve(matrix, vector)
        errors = [abs(sum(v * k for v, k in zip(row, c)) - y) for row, y in zip(rows, right)]
        largest = max(errors)
        if best is None or largest < best_error:
            best, best_error = c, largest
        share = [s * (e / largest + mp.mpf("1e-3")) for s, e in zip(share, errors)]
    return best


def round_to(value, double):
    value = float(value) if double else struct.unpack("f", struct.pack("f", float(value)))[0]
    return mp.mpf(value)


def fit(name, f, low, high, degree, double, weight=lambda x: mp.mpf(1)):
    """Prints the polynomial that approximates f with the error weighted by `weight`."""
    low, high = mp.mpf(low), mp.mpf(high)
    count = 6 * (degree + 2)
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf("0.5")) / count)
              for i in range(count)]
    exact = [f(x) for x in points]
    weights = [weight(x) for x in points]
    c = []
    while len(c) <= degree:
        rest = [y - sum(k * x**i for i, k in enumerate(c)) for x, y in zip(points, exact)]
        powers = range(len(c), degree + 1)
        c.append(round_to(lawson(points, powers, rest, weights, 12)[0], double))
    total = max(abs(weight(x) * (sum(k * x**i for i, k in enumerate(c)) - f(x)))
                for x in [low + (high - low) * (i + mp.mpf("0.37")) / 400 for i in range(400)])
    kind, suffix = ("double", "") if double else ("float", "f")
    print(f"// Largest error 2^{float(mp.log(total, 2)):.1f} on [{mp.nstr(low, 5)}, "
          f"{mp.nstr(high, 5)}].")
    print(f"inline constexpr {kind} {name}[] = {{")
    for x in c:
        print(f"    {float(x).hex()}{suffix},")
    print("};\n")


def constant(name, value, double, bits=None):
    """Prints a constant; with `bits`, the leading bits as NAME_hi and the remainder as NAME_lo."""
    kind, suffix = ("double", "") if double else ("float", "f")
    if bits is None:
        print(f"inline constexpr {kind} {name} = {float(round_to(value, double)).hex()}{suffix};")
        return
    mantissa, exponent = mp.frexp(value)
    high = mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)
    low = round_to(value - high, double)
    print(f"inline constexpr {kind} {name}High = {float(high).hex()}{suffix};")
    print(f"inline constexpr {kind} {name}Low = {float(low).hex()}{suffix};")


def exp_tail(x):  # (exp(x) - 1 - x) / x^2
    return sum(x**k / mp.factorial(k + 2) for k in range(40))


def log_tail(x):  # (log(1+x) - x + x^2/2) / x^3
    if abs(x) < mp.mpf("1e-3"):
        return sum((-1) ** k * x**k / (k + 3) for k in range(25))
    return (mp.log1p(x) - x + x * x / 2) / x**3


def atanh_tail(z):  # (atanh(s) / s - 1) / z with z = s^2
    return sum(z**k / (2 * k + 3) for k in range(70))


def atanh_tail2(z):
    return sum(z**k / (2 * k + 5) for k in range(70))


def tanh_tail(z):  # (tanh(x) / x - 1) / z
    if z < mp.mpf("1e-6"):
        return -mp.mpf(1) / 3 + z * 2 / 15 - z * z * 17 / 315
    x = mp.sqrt(z)
    return (mp.tanh(x) / x - 1) / z


def erf_ratio(z):  # erf(x) / x - 1
    return 2 / mp.sqrt(mp.pi) * sum((-z) ** k / (mp.factorial(k) * (2 * k + 1))
                                    for k in range(60)) - 1


def sin_tail(z):  # (sin(x) / x - 1) / z
    return sum((-1) ** (k + 1) * z**k / mp.factorial(2 * k + 3) for k in range(25))


def cos_tail(z):  # (cos(x) - 1 + z / 2) / z^2
    return sum((-1) ** k * z**k / mp.factorial(2 * k + 4) for k in range(25))


def atan_tail(z):  # (atan(x) / x - 1) / z
    if z < mp.mpf("0.01"):
        return sum((-1) ** (k + 1) * z**k / (2 * k + 3) for k in range(40))
    x = mp.sqrt(z)
    return (mp.atan(x) / x - 1) / z


def asin_tail(z):  # (asin(x) / x - 1) / z
    if z < mp.mpf("0.01"):
        return sum(mp.binomial(2 * k, k) / mp.mpf(4) ** k / (2 * k + 1) * z ** (k - 1)
                   for k in range(1, 40))
    x = mp.sqrt(z)
    return (mp.asin(x) / x - 1) / z


def erfc_scaled(t):
    """exp(x^2) erfc(x) with t = (x - 2.5) / (x + 2.5)."""
    x = mp.mpf("2.5") * (1 + t) / (1 - t)
    return mp.exp(x * x) * mp.erfc(x)


def main():
    ln2 = mp.log(2)
    print("// Written by minimax.py: polynomials and constants of the math library.")
    print("// clang-format off\n#pragma once\n\n#include <stdint.h>\n\nnamespace sgtc::kernels {\n")
    constant("kLog2EF32", 1 / ln2, False)
    constant("kLn2F32", ln2, False, 15)
    constant("kLog2EF64", 1 / ln2, True)
    constant("kLn2F64", ln2, True, 40)
    constant("kLn2PairF64", ln2, True, 53)
    constant("kPiF64", mp.pi, True, 53)
    constant("kPiHalfF64", mp.pi / 2, True, 53)
    constant("kPiQuarterF64", mp.pi / 4, True, 53)
    constant("kTwoThirdsF64", mp.mpf(2) / 3, True, 53)
    print("\n// 2 / pi, from the bit of value 1/2 on.")
    print("inline constexpr uint32_t kTwoOverPi[] = {")
    mp.mp.prec = 1500
    bits = int(mp.floor(mp.ldexp(2 / mp.pi, 40 * 32)))
    mp.mp.dps = 60
    words = [(bits >> (32 * (39 - i))) & 0xFFFFFFFF for i in range(40)]
    for i in range(0, 40, 8):
        print("    " + " ".join(f"0x{w:08x}," for w in words[i:i + 8]))
    print("};\n")

    half = ln2 / 2 * mp.mpf("1.0001")
    print("// (exp(r) - 1 - r) / r^2, for float and double.")
    exp_weight = lambda r: r * r / mp.exp(r)
    fit("kExpF32", exp_tail, -half, half, 4, False, exp_weight)
    fit("kExpF64", exp_tail, -half, half, 10, True, lambda r: r)

    low, high = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
    print("// (log(1 + f) - f + f^2 / 2) / f^3.")
    fit("kLogF32", log_tail, low, high, 8, False, lambda f: f * f)
    print("// (atanh(s) / s - 1) / s^2 in z = s^2; the second one lacks its first term as well.")
    top = (high / (2 + high)) ** 2
    fit("kAtanhF64", atanh_tail, 0, top, 7, True, lambda z: z)
    fit("kAtanhTailF64", atanh_tail2, 0, top, 8, True, lambda z: z * z)

    print("// (tanh(x) / x - 1) / x^2 in z = x^2.")
    fit("kTanhF32", tanh_tail, 0, mp.mpf("0.4"), 4, False, lambda z: z)

    print("// erf(x) / x - 1 in z = x^2.")
    fit("kErfF32", erf_ratio, 0, mp.mpf("0.81"), 7, False)
    fit("kErfF64", erf_ratio, 0, mp.mpf("0.81"), 13, True)
    print("// -log(1 - erf(x)) on the rest of the range.")
    fit("kErfLogF32", lambda x: -mp.log(mp.erfc(x)), "0.89", "3.95", 9, False,
        lambda x: mp.erfc(x))
    print("// exp(x^2) erfc(x) in t = (x - 2.5) / (x + 2.5).")
    fit("kErfcScaledF64", erfc_scaled, mp.mpf("-0.475"), mp.mpf("0.42"), 17, True,
        lambda t: mp.exp(-(mp.mpf("2.5") * (1 + t) / (1 - t)) ** 2))

    quarter = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
    print("// (sin(x) / x - 1) / x^2 and (cos(x) - 1 + x^2 / 2) / x^4 in z = x^2.")
    fit("kSinF64", sin_tail, 0, quarter, 5, True, lambda z: z)
    fit("kCosF64", cos_tail, 0, quarter, 5, True, lambda z: z * z)

    print("// (atan(x) / x - 1) / x^2 in z = x^2.")
    fit("kAtanF64", atan_tail, 0, (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.0001"), 11, True, lambda z: z)
    print("// (asin(x) / x - 1) / x^2 in z = x^2.")
    fit("kAsinF64", asin_tail, 0, mp.mpf("0.25"), 12, True, lambda z: z)
    print("}  // namespace sgtc::kernels")


if __name__ == "__main__":
    main()
