"""Small models with a loss, and data for them, that several tests train."""

import numpy as np

from harness import build, floats

WIDTH, CLASSES, LENGTH = 24, 11, 7


def language_model(rows, dropout=0.0):
    """Embedding, attention, normalization and cross-entropy over rows of LENGTH labels."""
    random = np.random.default_rng(11)
    tensors = {name: floats(random.normal(scale=0.2, size=shape)) for name, shape in
               {"table": (CLASSES, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH),
                "mixer": (WIDTH, WIDTH), "head": (WIDTH, CLASSES)}.items()}
    tensors |= {"scale": floats(np.ones(WIDTH)), "shift": floats(np.zeros(WIDTH)),
                "ratio": np.array(dropout, np.float32), "on": np.array(True),
                "flat": np.array([-1, CLASSES]), "line": np.array([-1])}
    return build(
        "e = Gather(table, ids) q = MatMul(e, query) k = MatMul(e, key) "
        "t = Transpose <perm = [0, 2, 1]>(k) s = MatMul(q, t) a = Softmax <axis = -1>(s) "
        "m = MatMul(a, e) d, mask = Dropout <seed = 5>(m, ratio, on) r = Add(e, d) "
        "n = LayerNormalization(r, scale, shift) h = MatMul(n, mixer) g = Tanh(h) "
        "z = MatMul(g, head) Y = Softmax <axis = -1>(z) scores = Reshape(z, flat) "
        "wanted = Reshape(labels, line) "
        "L = SoftmaxCrossEntropyLoss <ignore_index = -100>(scores, wanted)",
        tensors, inputs=f"int64[{rows}, {LENGTH}] ids, int64[{rows}, {LENGTH}] labels",
        outputs=f"float L, float[{rows}, {LENGTH}, {CLASSES}] Y")


def language_data(samples, ignored=0.0):
    """Random tokens; a share of the labels is ignored, more in later samples."""
    random = np.random.default_rng(13)
    ids = random.integers(0, CLASSES, (samples, LENGTH))
    labels = (ids * 3 + 1) % CLASSES
    odds = ignored * np.linspace(0, 2, samples)[:, None]
    labels[random.random(labels.shape) < odds] = -100
    return {"ids": ids, "labels": labels}


def perceptron(width):
    """Two layers of `width` on 64 rows: large enough for its products to be split over threads."""
    random = np.random.default_rng(17)
    return build("a = MatMul(x, v) b = Relu(a) c = MatMul(b, w) d = Sub(c, y) s = Mul(d, d) "
                 "L = ReduceMean <keepdims = 0>(s)",
                 {"v": floats(random.normal(scale=0.1, size=(width, width))),
                  "w": floats(random.normal(scale=0.1, size=(width, 1)))},
                 inputs=f"float[64, {width}] x, float[64, 1] y")


def perceptron_data(width, samples=256):
    random = np.random.default_rng(19)
    return {"x": floats(random.normal(size=(samples, width))),
            "y": floats(random.normal(size=(samples, 1)))}
