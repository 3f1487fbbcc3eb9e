"""M micro-batches of b rows train like one batch of M*b rows; losses that cannot are refused.

micro_batches.py [TEST...]
"""

import json
import sys

import numpy as np

from harness import build, expect_near, expect_text, floats, integers, run_tests
from small_models import language_data, language_model

ROWS, FEATURES, CLASSES, STEPS = 12, 5, 4, 4
RANDOM = np.random.default_rng(23)
WEIGHTS = {"w": floats(RANDOM.normal(size=(FEATURES, CLASSES))),
           "b": floats(RANDOM.normal(size=CLASSES))}
X = floats(RANDOM.normal(size=(ROWS * 2, FEATURES)))
TARGETS = floats(RANDOM.random((ROWS * 2, CLASSES)))
LABELS = integers(RANDOM.integers(0, CLASSES, ROWS * 2))
# Uneven: the first micro-batches of a step have few labels that count.
IGNORED = np.where(np.arange(ROWS * 2) % ROWS < 5, -100, LABELS)


def linear(loss, rows, target, tensors=None):
    return build(f"h = MatMul(x, w) z = Add(h, b) {loss}", {**WEIGHTS, **(tensors or {})},
                 inputs=f"float[{rows}, {FEATURES}] x, {target}".replace("ROWS", str(rows)))


def compare(bench, make, feeds, *options, tolerance=1e-6):
    """Losses and weights of 1, 2, 3, 6 and 12 micro-batches that make the same step."""
    expected = None
    for micro_batches in (1, 2, 3, 6, 12):
        bench.compile(make(ROWS // micro_batches), "--micro-batches", micro_batches, *options)
        losses, weights = bench.train(feeds=feeds, steps=STEPS, rate=0.1)
        assert len(losses) == STEPS and losses[0] != losses[2]
        if expected is None:
            expected = losses, weights
            continue
        np.testing.assert_allclose(losses, expected[0], rtol=tolerance)
        for name, value in weights.items():
            expect_near(value, expected[1][name], 10 * tolerance)


def test_mean_squared_error(bench):
    nodes = "d = Sub(z, y) s = Mul(d, d) L = ReduceMean <keepdims = 0>(s)"
    compare(bench, lambda rows: linear(nodes, rows, f"float[ROWS, {CLASSES}] y"),
            {"x": X, "y": TARGETS})


def test_cross_entropy(bench):
    for labels in (LABELS, IGNORED):
        nodes = "L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, y)"
        compare(bench, lambda rows: linear(nodes, rows, "int64[ROWS] y"), {"x": X, "y": labels})


def test_weighted_cross_entropy(bench):
    nodes = "L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, y, class_weights)"
    tensors = {"class_weights": floats([1, 3, 0.5, 2])}
    compare(bench, lambda rows: linear(nodes, rows, "int64[ROWS] y", tensors),
            {"x": X, "y": IGNORED}, "--freeze", "class_weights")


def test_negative_log_likelihood(bench):
    nodes = ("l = LogSoftmax <axis = 1>(z) "
             "L = NegativeLogLikelihoodLoss <ignore_index = -100>(l, y)")
    for labels in (LABELS, IGNORED):
        compare(bench, lambda rows: linear(nodes, rows, "int64[ROWS] y"), {"x": X, "y": labels})


def test_binary_cross_entropy_with_logits(bench):
    nodes = ("p = Softplus(z) t = Mul(z, y) e = Sub(p, t) L = ReduceMean <keepdims = 0>(e)")
    compare(bench, lambda rows: linear(nodes, rows, f"float[ROWS, {CLASSES}] y"),
            {"x": X, "y": TARGETS})


def test_penalty_on_weights_counts_once(bench):
    nodes = ("d = Sub(z, y) s = Mul(d, d) m = ReduceMean <keepdims = 0>(s) "
             "v = Mul(w, w) p = ReduceSum <keepdims = 0>(v) L = Add(m, p)")
    compare(bench, lambda rows: linear(nodes, rows, f"float[ROWS, {CLASSES}] y"),
            {"x": X, "y": TARGETS})


def test_masked_mean(bench):
    nodes = ("d = Sub(z, y) s = Mul(d, d) r = ReduceSum <keepdims = 0>(s, one) k = Mul(r, mask) "
             "n = ReduceSum <keepdims = 0>(k) c = ReduceSum <keepdims = 0>(mask) L = Div(n, c)")
    mask = floats(np.arange(ROWS * 2) % ROWS > 4)
    compare(bench,
            lambda rows: linear(nodes, rows, f"float[ROWS, {CLASSES}] y, float[ROWS] mask",
                                {"one": integers([1])}),
            {"x": X, "y": TARGETS, "mask": mask})


def test_language_model_with_clipping(bench):
    compare(bench, language_model, language_data(ROWS * 2, 0.5), "--optimizer", "adamw",
            "--clip-norm", "0.5", tolerance=1e-5)


def recurrent_model(rows):
    """An LSTM and a loop over its last states; the samples are the second dimension of its input."""
    random = np.random.default_rng(5)
    tensors = {name: floats(random.normal(size=shape) / 2) for name, shape in (
        ("wi", (1, 12, 5)), ("wr", (1, 12, 3)), ("wb", (1, 24)), ("m", (3, 3)))}
    nodes = ("s = Reshape(x, split) t = Transpose <perm = [1, 0, 2]>(s) "
             "all, last, cell = LSTM <hidden_size = 3>(t, wi, wr, wb) h = Squeeze(last, zero) "
             "z = Loop (two, yes, h) <body = b (int64 i, bool go, float[B,3] v) "
             "=> (bool go, float[B,3] u) { p = MatMul(v, m) u = Tanh(p) }> "
             "d = Sub(z, y) q = Mul(d, d) L = ReduceMean <keepdims = 0>(q)")
    return build(nodes, {**tensors, "split": integers([0, 4, 5]), "zero": integers([0]),
                         "two": integers(2), "yes": np.array(True)},
                 inputs=f"float[{rows}, 20] x, float[{rows}, 3] y")


def test_recurrent_network(bench):
    random = np.random.default_rng(6)
    compare(bench, recurrent_model, {"x": floats(random.normal(size=(ROWS * 2, 20))),
                                     "y": floats(random.random((ROWS * 2, 3)))}, tolerance=1e-5)


def test_packed_weights_change_no_bits(bench):
    random = np.random.default_rng(7)
    data = {"x": floats(random.normal(size=(96, 48))), "labels": integers(random.integers(0, 5, 96))}
    for mesh in ("1x1", "2x1"):
        found = []
        for packed in ("auto", "none"):
            bench.model("mlp", "--batch", 4, "--inputs", 48, "--hidden", "40,70", "--classes", 5)
            bench.compile(None, "--micro-batches", 8, "--mesh", mesh, "--prepack-weights", packed,
                          "--emit", "exe", "--emit", f"plan-json={bench.path('plan.json')}")
            plan = json.loads(bench.path("plan.json").read_text())[0]
            for position in plan["positions"]:
                runs = [entry["task"] for entry in position["schedules"]["train"]]
                assert runs.count("setup") == (packed == "auto"), runs
            found.append(bench.train(feeds=data, steps=6, rate=0.1))
        (losses, weights), (expected, unpacked) = found
        assert losses == expected and len(losses) == 6 and losses[0] != losses[3]
        for name, value in weights.items():
            np.testing.assert_array_equal(value, unpacked[name])


def test_limited_memory_has_no_packed_weights(bench):
    bench.model("mlp", "--batch", 4, "--inputs", 48, "--hidden", "40,70", "--classes", 5)
    for options, count in (((), 1), (("--memory", "1GiB"), 0)):
        bench.compile(None, "--micro-batches", 8, "--emit",
                      f"plan-json={bench.path('plan.json')}", *options)
        plan = json.loads(bench.path("plan.json").read_text())[0]
        tasks = [task["name"] for task in plan["positions"][0]["tasks"]]
        assert tasks.count("setup") == count, tasks


def test_loss_that_is_no_sum_is_refused_by_name(bench):
    nodes = ("d = Sub(z, y) s = Mul(d, d) m = ReduceMean <keepdims = 0>(s) L = Sqrt(m)")
    model = linear(nodes, 6, f"float[ROWS, {CLASSES}] y")
    for node in model.graph.node:
        node.name = "node_" + node.output[0]
    bench.compile(model)
    feeds = {"x": X[:ROWS], "y": TARGETS[:ROWS]}
    result = bench.refuse(model, "--micro-batches", "2")
    expect_text(result, "node_L", "operator sqrt", "--loss-average")
    bench.compile(model, "--micro-batches", "2", "--loss-average=mean-of-means")
    losses, _ = bench.train(feeds=feeds)
    z = X[:ROWS] @ WEIGHTS["w"] + WEIGHTS["b"]
    squares = ((z - TARGETS[:ROWS])**2).reshape(2, -1)
    expect_near(losses[0], np.sqrt(squares.mean(1)).mean(), 1e-6)


def test_loss_over_rows_of_other_samples_is_refused(bench):
    nodes = ("t = Transpose(z) g = MatMul(z, t) L = ReduceMean <keepdims = 0>(g)")
    model = linear(nodes, 6, f"float[ROWS, {CLASSES}] y")
    expect_text(bench.refuse(model, "--micro-batches", "2"), "error", "--loss-average")


run_tests(globals(), sys.argv[1:])
