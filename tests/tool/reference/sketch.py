"""Sketches of weights: few numbers that tell how far two models are apart.

For vectors s_k of random signs, the mean of (s_k · (v - w))² estimates |v - w|² (Johnson and
Lindenstrauss, 1984), so references of whole models need a few kilobytes. The signs come from numpy's
RandomState, whose stream is frozen.
"""

import math

import numpy as np

SIZE = 64


def sketch(tensors):
    """{"norm": Frobenius norm, "products": SIZE numbers} of all tensors in the order of names."""
    total = 0.0
    products = np.zeros(SIZE)
    for number, name in enumerate(sorted(tensors)):
        values = np.asarray(tensors[name], dtype=np.float64).ravel()
        total += float(values @ values)
        signs = np.random.RandomState(number).randint(0, 2, size=(SIZE, values.size)) * 2 - 1
        products += signs @ values
    return {"norm": math.sqrt(total), "products": [float(f"{p:.9g}") for p in products]}


def relative_distance(found, expected):
    """The estimate of |v - w| / |w|."""
    difference = np.array(found["products"]) - np.array(expected["products"])
    return float(np.sqrt(np.mean(difference ** 2)) / expected["norm"])
