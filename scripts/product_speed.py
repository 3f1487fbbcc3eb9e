#!/usr/bin/env python3
"""Matrix products of this project's CPU kernels beside OpenBLAS, as a table of ratios.

    scripts/product_speed.py [--rounds N] [--seconds S]

One thread, float32, shapes of the models of cpu_speed.py: forward (nn), gradient of the input (nt),
gradient of the weight (tn). In each round both compute a product again and again for some time; a
figure is the fastest run of all rounds, because other load on the machine only makes runs slower.
"Plain" is the product alone. "With epilogue" adds a bias and applies GELU: in this project's store,
for OpenBLAS in a pass of its own that uses the same code. A ratio above 1 means that this project's
is faster. Fails where results differ by more than rounding, or a plain product has less than 85 % of
OpenBLAS's rate, or one with epilogue less than all of it.

Needs clang++-19, and a Python with numpy, whose package brings OpenBLAS (scripts/build.sh makes one
in build/venv).
"""

import argparse
import ctypes
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402  (reads the variable)

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels"
NO, YES = 111, 112  # CblasNoTrans, CblasTrans
ROW_MAJOR = 101


def openblas():
    """The library that numpy's package brings."""
    found = sorted((pathlib.Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*.so*"))
    if not found:
        sys.exit("numpy: found no OpenBLAS in its package; install numpy with pip")
    return ctypes.CDLL(str(found[0]))


def build(folder, name, *flags):
    """The kernels as a library, for this machine."""
    library = folder / f"{name}.so"
    subprocess.run(["clang++-19", "-std=c++20", "-O2", "-march=native", "-fno-slp-vectorize",
                    "-mprefer-vector-width=512", "-ffp-contract=off", "-Wno-psabi", "-w", "-shared",
                    "-fPIC", f"-I{KERNELS}", f"-I{KERNELS}/include", *flags,
                    KERNELS / "matmul/cpu_bench.cc", "-o", library], check=True)
    return ctypes.CDLL(str(library))


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def fastest(run, seconds):
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end or best == math.inf:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


class Product:
    """One product and its operands."""

    def __init__(self, index, plain, fused, blas):
        fields = (ctypes.c_int64 * 5)()
        plain.describe_product(ctypes.c_int64(index), fields)
        self.index = ctypes.c_int64(index)
        self.rows, self.columns, self.depth, self.transpose_a, self.transpose_b = fields
        random = np.random.default_rng(index)
        size = (self.rows, self.depth), (self.depth, self.columns)
        flip = self.transpose_a, self.transpose_b
        self.a, self.b = (random.standard_normal(s[::-1] if t else s).astype(np.float32)
                          for s, t in zip(size, flip))
        self.bias = random.standard_normal(self.columns).astype(np.float32)
        self.c = np.empty((self.rows, self.columns), np.float32)
        self.plain, self.fused, self.blas = plain, fused, blas

    def name(self):
        layout = "nt"[self.transpose_a] + "nt"[self.transpose_b]
        return f"{self.rows} × {self.columns} × {self.depth} {layout}"

    def run(self, library):
        library.run_product(self.index, pointer(self.a), pointer(self.b), pointer(self.c),
                            pointer(self.bias))

    def run_blas(self):
        n = ctypes.c_int64
        self.blas.scipy_cblas_sgemm64_(
            ROW_MAJOR, YES if self.transpose_a else NO, YES if self.transpose_b else NO,
            n(self.rows), n(self.columns), n(self.depth), ctypes.c_float(1), pointer(self.a),
            n(self.a.shape[1]), pointer(self.b), n(self.b.shape[1]), ctypes.c_float(0),
            pointer(self.c), n(self.columns))

    def run_blas_and_pass(self):
        self.run_blas()
        self.plain.add_bias_and_activate(pointer(self.c), pointer(self.bias),
                                         ctypes.c_int64(self.rows), ctypes.c_int64(self.columns))

    def ways(self):
        return [self.run_blas, lambda: self.run(self.plain), self.run_blas_and_pass,
                lambda: self.run(self.fused)]

    def check(self):
        """Each way's results beside those of the first with as much work."""
        results = []
        for way in self.ways():
            self.c.fill(np.nan)
            way()
            results.append(self.c.copy())
        for wanted, found in (results[:2], results[2:]):
            error = np.abs(wanted - found).max()
            if not error <= 1e-5 * self.depth:
                sys.exit(f"{self.name()}: results differ by {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each way in a round")
    options = parser.parse_args()
    blas = openblas()
    slow = []
    ratios = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plain, fused = build(folder, "plain"), build(folder, "fused", "-DSGTC_EPILOGUE")
        print("| product | OpenBLAS GFLOP/s | ratio, plain | ratio, with epilogue |")
        print("| --- | --- | --- | --- |")
        for index in range(plain.product_count()):
            product = Product(index, plain, fused, blas)
            product.check()
            best = [math.inf] * 4
            for _ in range(options.rounds):
                for i, way in enumerate(product.ways()):
                    best[i] = min(best[i], fastest(way, options.seconds))
            pair = best[0] / best[1], best[2] / best[3]
            rate = 2e-9 * product.rows * product.columns * product.depth / best[0]
            print(f"| {product.name()} | {rate:.0f} | {pair[0]:.2f} | {pair[1]:.2f} |", flush=True)
            for list_of_kind, ratio in zip(ratios, pair):
                list_of_kind.append(ratio)
            if pair[0] < 0.85 or pair[1] < 1:
                slow.append(product.name())
    means = [math.exp(sum(map(math.log, kind)) / len(kind)) for kind in ratios]
    print(f"| geometric mean | | {means[0]:.2f} | {means[1]:.2f} |")
    if slow:
        sys.exit("too slow: " + "; ".join(slow))


if __name__ == "__main__":
    main()
