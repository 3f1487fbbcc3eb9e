"""--on-unsupported=fallback: operators that have no kernel train as compositions of others.

Determinants are compared with numpy, deformable convolutions with what Conv makes of the same
model. fallback.py [TEST...]
"""

import sys

import numpy as np

from harness import build, expect_near, expect_text, floats, run_tests

FALLBACK = "--on-unsupported=fallback"


def determinant_model(matrices):
    """The mean over a batch of (det(A + x) - y)²; A [n, n] is trained."""
    size = matrices.shape[-1]
    return build("m = Add(A, x) d = Det(m) e = Sub(d, y) s = Mul(e, e) "
                 "L = ReduceMean <keepdims = 0>(s)", {"A": matrices},
                 inputs=f"float[4, {size}, {size}] x, float[4] y")


def determinant_feeds(size, rows=4):
    random = np.random.RandomState(3)
    return {"x": (0.5 * random.normal(size=(rows, size, size))).astype(np.float32),
            "y": random.normal(size=rows).astype(np.float32)}


def cofactors(matrix):
    """The derivatives of a determinant by each element, by definition: singular ones too."""
    size = len(matrix)
    result = np.empty_like(matrix)
    for i in range(size):
        for j in range(size):
            minor = np.delete(np.delete(matrix, i, 0), j, 1)
            result[i, j] = (-1) ** (i + j) * (np.linalg.det(minor) if size > 1 else 1)
    return result


def train_determinant(a, feeds, rate, steps):
    """Losses and the final A, in double precision."""
    a, losses = a.astype(np.float64), []
    for _ in range(steps):
        sums = a + feeds["x"]
        errors = np.linalg.det(sums) - feeds["y"]
        losses.append(np.mean(errors**2))
        slopes = [2 * e * cofactors(m) / len(errors) for e, m in zip(errors, sums)]
        a = a - rate * np.sum(slopes, 0)
    return losses, a


def test_determinants_train_as_in_numpy(bench):
    for size in (1, 2, 4):
        a = np.random.RandomState(5).normal(size=(size, size)).astype(np.float32)
        feeds = determinant_feeds(size)
        result = bench.compile(determinant_model(a), FALLBACK)
        expect_text(result, "(Det)", "has no kernel and runs as a slow reference",
                    "per micro-batch, where a kernel would write 4")
        found, weights = bench.train(feeds=feeds, steps=5, rate=0.002)
        losses, final = train_determinant(a, feeds, 0.002, 5)
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        expect_near(weights["A"], final)


def test_singular_matrices_have_gradients(bench):
    a = floats([[1, 2, 3], [2, 4, 6], [1, 0, 1]])
    feeds = {"x": np.zeros((4, 3, 3), np.float32), "y": floats([1, 1, 1, 1])}
    loss, gradients = bench.probe(determinant_model(a), FALLBACK, feeds=feeds)
    expect_near(loss, 1)
    expect_near(gradients["A"], -2 * cofactors(a.astype(np.float64)))


def test_ranks_and_micro_batches_share_the_work(bench):
    a = np.random.RandomState(5).normal(size=(3, 3)).astype(np.float32)
    feeds = determinant_feeds(3, rows=16)
    losses, final = train_determinant(a, feeds, 0.001, 3)
    for arguments in (["--micro-batches", "4"], ["--mesh", "1x2", "--micro-batches", "2"]):
        bench.compile(determinant_model(a), FALLBACK, *arguments)
        found, weights = bench.train(feeds=feeds, steps=3, rate=0.001)
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        expect_near(weights["A"], final)


def test_evaluation_and_prediction_use_it_too(bench):
    a = np.random.RandomState(5).normal(size=(3, 3)).astype(np.float32)
    feeds = determinant_feeds(3)
    model = determinant_model(a)
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[1].name = "d"
    model.graph.output[1].type.tensor_type.shape.dim.add().dim_value = 4
    bench.compile(model, FALLBACK)
    expect_near(bench.predict("d", feeds), np.linalg.det(a + feeds["x"]))


def convolution_model(node, **tensors):
    """Two layers, of which the first is `node` from x to h."""
    return build(f"{node} r = Relu(h) z = GlobalAveragePool(r) f = Flatten(z) g = MatMul(f, out) "
                 "L = SoftmaxCrossEntropyLoss(g, labels)", tensors, opset=22,
                 inputs="float[3, 2, 6, 5] x, int64[3] labels")


def convolution_tensors():
    random = np.random.RandomState(11)
    return {"w": random.normal(size=(4, 2, 3, 3)).astype(np.float32),
            "b": random.normal(size=4).astype(np.float32),
            "out": random.normal(size=(4, 3)).astype(np.float32)}


CONVOLUTION_FEEDS = {
    "x": np.random.RandomState(13).normal(size=(3, 2, 6, 5)).astype(np.float32),
    "labels": np.array([0, 2, 1])}


def test_deformable_convolutions_without_offsets_train_like_convolutions(bench):
    tensors = convolution_tensors()
    results = []
    for node in ("h = Conv <pads = [1, 1, 1, 1], strides = [2, 1]>(x, w, b)",
                 "h = DeformConv <pads = [1, 1, 1, 1], strides = [2, 1]>(x, w, zeros, b)"):
        more = {"zeros": np.zeros((3, 18, 3, 5), np.float32)} if "Deform" in node else {}
        options = [FALLBACK, "--freeze", "zeros"] if more else []
        bench.compile(convolution_model(node, **tensors, **more), *options)
        results.append(bench.train(feeds=CONVOLUTION_FEEDS, steps=5, rate=0.1))
    (expected, weights), (found, deformed) = results
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for name, value in weights.items():
        expect_near(deformed[name], value)


def test_offsets_and_masks_learn(bench):
    random = np.random.RandomState(17)
    tensors = {**convolution_tensors(),
               "offset": (0.4 * random.normal(size=(3, 18, 6, 5))).astype(np.float32),
               "mask": random.uniform(size=(3, 9, 6, 5)).astype(np.float32)}
    model = convolution_model("h = DeformConv <pads = [1, 1, 1, 1]>(x, w, offset, b, mask)",
                              **tensors)
    bench.compile(model, FALLBACK)
    losses, weights = bench.train(feeds=CONVOLUTION_FEEDS, steps=12, rate=0.3)
    assert losses[-1] < 0.8 * losses[0], losses
    for name in ("offset", "mask"):
        assert np.abs(weights[name] - tensors[name]).max() > 1e-4, name


def test_refusals_say_what_the_option_would_do(bench):
    model = determinant_model(floats(np.eye(3)))
    expect_text(bench.refuse(model), "1 node has an operator that is not supported",
                "(Det)", "--on-unsupported=fallback computes it slowly")
    large = determinant_model(floats(np.eye(11)))
    expect_text(bench.refuse(large, FALLBACK), "expected square matrices of 1 to 10 rows",
                "found [4,11,11]")
    other = build("p = RoiAlign(x, rois, rows) L = ReduceSum <keepdims = 0>(p)",
                  {"rois": floats([[0, 0, 2, 2]]), "rows": np.array([0])},
                  inputs="float[1, 1, 4, 4] x", opset=16)
    result = bench.refuse(other, FALLBACK)
    expect_text(result, "(RoiAlign)")
    assert "fallback" not in result.stderr, result.stderr


run_tests(globals(), sys.argv[1:])
