"""Rows of padding do not count: not in losses, gradients and evaluations, on any mesh.

padding.py [TEST...]
"""

import sys

import numpy as np

from harness import (build, expect_near, expect_text, floats, initial_values, integers,
                     read_safetensors, run_tests)
from mesh_models import train
from small_models import language_data, language_model

FEATURES, CLASSES, RATE = 5, 4, 0.5
RANDOM = np.random.default_rng(31)
WEIGHTS = {"w": floats(RANDOM.normal(size=(FEATURES, CLASSES))),
           "b": floats(RANDOM.normal(size=CLASSES))}
X = floats(RANDOM.normal(size=(11, FEATURES)))
TARGETS = floats(RANDOM.random((11, CLASSES)))
LABELS = integers(RANDOM.integers(0, CLASSES, 11))
IGNORED = np.where(np.arange(11) % 3 == 1, -100, LABELS)
SQUARES = "d = Sub(z, y) s = Mul(d, d) L = ReduceMean <keepdims = 0>(s)"
PAD = "--last-batch=pad"


def linear(loss, rows, target):
    return build(f"h = MatMul(x, w) z = Add(h, b) {loss}", WEIGHTS,
                 inputs=f"float[{rows}, {FEATURES}] x, {target}".replace("ROWS", str(rows)))


def squares(rows):
    return linear(SQUARES, rows, f"float[ROWS, {CLASSES}] y")


def squared_error(weights, x, y):
    difference = x @ weights["w"] + weights["b"] - y
    gradient = 2 * difference / difference.size
    return (difference**2).mean(), {"w": x.T @ gradient, "b": gradient.sum(0)}


def cross_entropy(weights, x, y):
    z = x @ weights["w"] + weights["b"]
    z = z - z.max(1, keepdims=True)
    counts = (y != -100)[:, None]
    logs = z - np.log(np.exp(z).sum(1, keepdims=True))
    wanted = np.eye(CLASSES)[np.where(y == -100, 0, y)] * counts
    gradient = (np.exp(logs) * counts - wanted) / counts.sum()
    return -(logs * wanted).sum() / counts.sum(), {"w": x.T @ gradient, "b": gradient.sum(0)}


def binary_cross_entropy(weights, x, y):
    z = x @ weights["w"] + weights["b"]
    gradient = (1 / (1 + np.exp(-z)) - y) / z.size
    return (np.logaddexp(0, z) - z * y).mean(), {"w": x.T @ gradient, "b": gradient.sum(0)}


def epochs(reference, x, y, rows, steps):
    """Losses and weights of SGD in steps of `rows` rows, the last of an epoch with what is left."""
    weights = {name: value.astype(np.float64) for name, value in WEIGHTS.items()}
    losses, first = [], 0
    for _ in range(steps):
        end = min(first + rows, len(x))
        loss, gradients = reference(weights, x[first:end], y[first:end])
        weights = {name: value - RATE * gradients[name] for name, value in weights.items()}
        losses.append(loss)
        first = end % len(x)
    return losses, weights


def check(bench, make, reference, y):
    """Steps of 8 rows; of 11 samples, the second of an epoch has 3."""
    losses, weights = epochs(reference, X, y, 8, 4)
    for micro_batches in (1, 2, 4, 8):
        bench.compile(make(8 // micro_batches), "--micro-batches", micro_batches, PAD)
        found, after = bench.train(feeds={"x": X, "y": y}, steps=4, rate=RATE)
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for name, value in weights.items():
            expect_near(after[name], value, 1e-5)


def test_mean_squared_error(bench):
    check(bench, squares, squared_error, TARGETS)


def test_cross_entropy(bench):
    nodes = "L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, y)"
    for labels in (LABELS, IGNORED):
        check(bench, lambda rows: linear(nodes, rows, "int64[ROWS] y"), cross_entropy, labels)


def test_binary_cross_entropy_with_logits(bench):
    nodes = "p = Softplus(z) t = Mul(z, y) e = Sub(p, t) L = ReduceMean <keepdims = 0>(e)"
    check(bench, lambda rows: linear(nodes, rows, f"float[ROWS, {CLASSES}] y"),
          binary_cross_entropy, TARGETS)


def test_whole_steps_have_the_bits_of_a_program_without_weights(bench):
    runs = []
    for options in ([], [PAD]):
        bench.compile(language_model(4), "--micro-batches", 2, *options)
        runs.append(bench.train(feeds=language_data(16, 0.5), steps=4, rate=0.1))
    assert runs[0][0] == runs[1][0]
    for name, value in runs[0][1].items():
        assert value.tobytes() == runs[1][1][name].tobytes(), name


def test_meshes_whose_ranks_have_padding_alone(bench):
    """Steps of 4 rows: 5 samples leave one row, and one sample is all that a step has."""
    for samples in (5, 1):
        feeds = {"x": X[:samples], "y": TARGETS[:samples]}
        losses, weights = epochs(squared_error, *feeds.values(), 4, 4)
        for rows, micro_batches, mesh in ((4, 1, "1x1"), (2, 1, "1x2"), (1, 2, "2x2")):
            bench.compile(squares(rows), "--mesh", mesh, "--micro-batches", micro_batches, PAD)
            run = train(bench, mesh, feeds, "--lr", RATE)
            np.testing.assert_allclose(run.column("loss"), losses, rtol=1e-5)
            for name, value in read_safetensors(run.file).items():
                expect_near(value, weights[name], 1e-5)


def test_evaluation_counts_every_row(bench):
    for nodes, target, reference, y in (
            (SQUARES, f"float[ROWS, {CLASSES}] y", squared_error, TARGETS),
            ("L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, y)", "int64[ROWS] y",
             cross_entropy, IGNORED)):
        model = linear(nodes, 3, target)
        bench.compile(model, "--micro-batches", 2, PAD)
        np.save(bench.path("x.npy"), X)
        np.save(bench.path("y.npy"), y)
        result = bench.run("./train", "--eval", "x=x.npy", "--eval", "y=y.npy")
        assert result.returncode == 0 and "note" not in result.stdout, result
        loss = float(result.stdout.split("loss ")[1].split()[0])
        expect_near(loss, reference(initial_values(model), X, y)[0], 1e-5)


def test_resumed_runs_have_the_same_bits(bench):
    bench.compile(language_model(2), "--micro-batches", 2, "--optimizer", "adamw", PAD)
    feeds = language_data(10, 0.3)

    def save(steps, name, *arguments):
        result = bench.start("--steps", steps, "--shuffle", "--save", name, *arguments, feeds=feeds)
        assert result.returncode == 0, result.stderr
        return bench.path(name).read_bytes()

    whole = save(7, "whole")
    for stop in (2, 3, 4):
        checkpoint = ["--checkpoint", f"c{stop}", "--resume", "auto"]
        save(stop, "part", *checkpoint)
        assert save(7, "resumed", *checkpoint) == whole, stop


def test_samples_per_second_count_no_padding(bench):
    bench.compile(squares(4), PAD)
    bench.train(feeds={"x": X[:6], "y": TARGETS[:6]}, steps=4)
    rows = [record["samples_per_s"] * record["ms"] / 1000 for record in bench.log]
    np.testing.assert_allclose(rows, [4, 2, 4, 2], rtol=1e-3)


def test_rows_can_be_dropped_all_the_same(bench):
    bench.compile(squares(4), PAD)
    losses, _ = bench.train("--last-batch=drop", feeds={"x": X[:6], "y": TARGETS[:6]}, steps=2,
                            rate=RATE)
    expected, _ = epochs(squared_error, X[:4], TARGETS[:4], 4, 2)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_what_cannot_leave_padding_out_is_refused(bench):
    model = linear("d = Sub(z, y) s = Mul(d, d) m = ReduceMean <keepdims = 0>(s) L = Sqrt(m)", 4,
                   f"float[ROWS, {CLASSES}] y")
    model.graph.node[-1].name = "root"
    expect_text(bench.refuse(model, PAD), "root", "padding", "--last-batch=drop")
    model = build("n = BatchNormalization <training_mode = 1>(x, s, t, m, v) d = Sub(n, y) "
                  "e = Mul(d, d) L = ReduceMean <keepdims = 0>(e)",
                  {name: floats(np.ones(FEATURES)) for name in "stmv"},
                  inputs=f"float[4, {FEATURES}] x, float[4, {FEATURES}] y")
    model.graph.node[0].name = "norm"
    expect_text(bench.refuse(model, PAD), "norm", "statistics", "--last-batch=drop")
    result = bench.sgtc(bench.write_model(squares(4)), PAD, "--loss-average=mean-of-means")
    assert result.returncode == 2
    expect_text(result, "mean of means")


def test_programs_without_weights_say_what_to_do(bench):
    bench.compile(squares(4))
    result = bench.start("--steps", 1, PAD, feeds={"x": X, "y": TARGETS})
    assert result.returncode == 1
    expect_text(result, "no weights", "compile it with sgtc --last-batch=pad")


run_tests(globals(), sys.argv[1:])
