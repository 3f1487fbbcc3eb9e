"""Gradients, steps and kernels that other tools got wrong, as small graphs of one rank.

Expected values follow by hand from the definitions. training_cases.py [TEST...]
"""

import math
import re
import subprocess
import sys

import numpy as np

from harness import build, expect_near, expect_text, floats, integers, read_safetensors, run_tests


def test_ties_share_a_gradient_of_one(bench):
    for operator in ("Max", "Min"):
        model = build(f"L = {operator}(a, b)", {"a": floats(1), "b": floats(1)})
        _, found = bench.probe(model)
        assert found["a"] + found["b"] == 1 and 0 <= found["a"] <= 1, found
    for operator, x in (("ReduceMax", [2, 2, 1]), ("ReduceMin", [1, 1, 2])):
        _, found = bench.probe(build(f"L = {operator} <keepdims = 0>(x)", {"x": floats(x)}))
        assert found["x"].sum() == 1 and found["x"][2] == 0 and (found["x"] >= 0).all(), found


def test_relu_and_clip_at_their_bounds(bench):
    x = floats([0.0, -0.0, 1e-40, -1e-40])
    _, found = bench.probe(build("Y = Relu(x) L = ReduceSum <keepdims = 0>(Y)", {"x": x}))
    expect_near(found["x"], [0, 0, 1, 0], 0)
    slopes = []
    for nodes in ("Y = Clip(x, low, high) L = ReduceSum <keepdims = 0>(Y)",
                  "e = Identity(x) Y = Clip(e, low, high) P = Mul(Y, one) "
                  "L = ReduceSum <keepdims = 0>(P)"):
        model = build(nodes, {"x": floats([-1, 0, 1, 6, 7]), "low": floats(0), "high": floats(6),
                              "one": floats([1, 1, 1, 1, 1])})
        _, found = bench.probe(model, "--train", "x")
        slopes.append(found["x"])
        assert found["x"][0] == 0 and found["x"][2] == 1 and found["x"][4] == 0
        assert (0 <= found["x"]).all() and (found["x"] <= 1).all()
    expect_near(slopes[0], slopes[1], 0)


def power_model(base, exponent, factor=None):
    nodes = "Y = Pow(b, e) " + ("P = Mul(Y, f) " if factor is not None else "P = Identity(Y) ")
    tensors = {"b": floats(base), "e": floats(exponent)}
    if factor is not None:
        tensors["f"] = floats(factor)
    return build(nodes + "L = ReduceSum <keepdims = 0>(P)", tensors, observe={"Y": [len(base)]})


def test_powers_of_zero_and_negative_bases(bench):
    base, exponent = [0, 0, 0, -2], [0, 1, 2, 2]
    _, found = bench.probe(power_model(base, exponent), "--freeze", "e")
    expect_near(found["see_Y"], [1, 0, 0, 4], 0)
    expect_near(found["b"], [0, 1, 0, -4], 1e-6)
    _, found = bench.probe(power_model(base[:3], exponent[:3]))
    expect_near(found["e"], [0, 0, 0], 0)
    _, found = bench.probe(power_model(base, exponent, [0, 0, 0, 0]), "--freeze", "e",
                           "--freeze", "f")
    expect_near(found["b"], [0, 0, 0, 0], 0)


def test_infinite_gradient_skips_the_step(bench):
    model = build("Y = Pow(b, e) L = ReduceSum <keepdims = 0>(Y)",
                  {"b": floats([0, 4]), "e": floats([0.5, 0.5])})
    bench.compile(model, "--freeze", "e")
    _, after = bench.train(steps=2)
    expect_near(after["b"], [0, 4], 0)
    assert [record["skipped_steps"] for record in bench.log] == [1, 2]


def ignored_model():
    return build("z = Add(x, b) L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, labels)",
                 {"b": floats([0.1, 0.2, 0.3])}, inputs="float[2, 3] x, int64[2] labels",
                 outputs="float L")


def test_batch_of_ignored_labels_changes_nothing(bench):
    model = ignored_model()
    bench.compile(model, "--optimizer", "adamw")
    x = floats([[1, 2, 3], [4, 5, 7]])
    feeds = {"x": np.concatenate([x, x]), "labels": integers([-100, -100, 0, 1])}
    checkpoint = bench.path("checkpoint")
    losses, after = bench.train("--checkpoint", checkpoint, feeds=feeds, steps=1, rate=0.1)
    assert np.isnan(losses[0]) or losses[0] == 0
    assert bench.log[0]["skipped"] is np.isnan(losses[0]).item()
    expect_near(after["b"], floats([0.1, 0.2, 0.3]), 0)
    state = read_safetensors(next(checkpoint.iterdir()) / "optimizer.safetensors")
    for name, value in state.items():
        assert np.isfinite(value).all(), name
    losses, after = bench.train(feeds=feeds, steps=2, rate=0.1)
    assert np.isfinite(losses[1]) and np.isfinite(after["b"]).all()
    if np.isnan(losses[0]):
        result = bench.start("--steps", 2, "--on-nan", "stop", feeds=feeds)
        assert result.returncode == 1
        expect_text(result, "step 1", "not finite")


def test_ignored_micro_batch_adds_nothing(bench):
    x = floats([[1, 2, 3], [4, 5, 7]])
    model = ignored_model()
    loss, gradients = bench.probe(model, feeds={"x": x, "labels": integers([0, 1])})
    both = {"x": np.concatenate([x, x]), "labels": integers([-100, -100, 0, 1])}
    found, total = bench.probe(model, "--micro-batches", "2", feeds=both)
    expect_near(found, loss, 1e-6)
    expect_near(total["b"], gradients["b"], 1e-6)


def test_micro_batches_are_not_a_mean_of_means(bench):
    rows = floats([[0] * 8] + [[np.log(7)] + [0] * 7] * 3)
    gradient = floats([-0.59375] + [0.08482143] * 7)
    nodes = "z = Add(x, b) L = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, labels)"
    for batch, micro_batches in ((6, 1), (3, 2)):
        model = build(nodes, {"b": np.zeros(8, np.float32)},
                      inputs=f"float[{batch}, 8] x, int64[{batch}] labels")
        x = np.concatenate([rows[:1], rows[:1], rows[:1], rows[1:]])
        labels = integers([0, -100, -100, 0, 0, 0])
        loss, found = bench.probe(model, "--micro-batches", micro_batches,
                                  feeds={"x": x, "labels": labels})
        expect_near(loss, 1.5 * np.log(2), 1e-6)
        expect_near(found["b"], gradient)


def test_broadcast_operands_get_sums(bench):
    model = build("p = Mul(a, b) s = Add(p, c) L = ReduceSum <keepdims = 0>(s)",
                  {"a": floats([[1], [2]]), "b": floats([[1, 2, 3]]), "c": floats(4)})
    loss, found = bench.probe(model)
    assert loss == 42
    expect_near(found["a"], [[6], [6]], 0)
    expect_near(found["b"], [[3, 3, 3]], 0)
    expect_near(found["c"], 6, 0)
    model = build("m = ReduceMean(x) d = Sub(x, m) L = ReduceSum <keepdims = 0>(d)",
                  {"x": floats([1, 2, 4, 8])})
    _, found = bench.probe(model)
    np.testing.assert_allclose(found["x"], 0, atol=1e-6)


def test_broadcast_over_symbolic_dimensions(bench):
    model = build("p = Mul(h, m) q = Mul(p, s) r = MatMul(q, w) L = ReduceSum <keepdims = 0>(r)",
                  {"m": floats([[[1, 2, 3, 4]]]), "s": floats([1, 1, 2, 2]),
                   "w": floats([[1, 2], [3, 4], [5, 6], [7, 8]])},
                  inputs='float["B", "T", 4] h')
    for batch, time in ((1, 3), (5, 1)):
        h = np.random.default_rng(batch).normal(size=(batch, time, 4)).astype(np.float32)
        bench.compile(model, "--dim", "B=1,5", "--dim", "T=3,1")
        _, after = bench.train("--dim", f"B={batch}", "--dim", f"T={time}", feeds={"h": h})
        m, s, w = floats([[[1, 2, 3, 4]]]), floats([1, 1, 2, 2]), model.graph.initializer
        columns = floats([3, 7, 11, 15])
        expect_near(m - after["m"], (h * s * columns).sum((0, 1), keepdims=True))
        expect_near(s - after["s"], (h * m * columns).sum((0, 1)))
        assert after["w"].shape == tuple(w[2].dims)


def test_rows_of_an_embedding_add_up(bench):
    model = build("Y = Gather(e, i) L = ReduceSum <keepdims = 0>(Y)",
                  {"e": floats(np.ones([3, 2]))}, inputs="int64[3] i")
    for ids, gradient in (([0, 0, 2], [[2, 2], [0, 0], [1, 1]]),
                          ([-1, -1, 0], [[1, 1], [0, 0], [2, 2]])):
        _, found = bench.probe(model, feeds={"i": integers(ids)})
        expect_near(found["e"], gradient, 0)


def test_a_padding_row_keeps_its_values(bench):
    model = build("Y = Gather(e, i) L = ReduceSum <keepdims = 0>(Y)",
                  {"e": floats(np.ones([3, 2]))}, inputs="int64[3] i")
    bench.compile(model, "--padding-index", "e=0", "--optimizer", "adamw", "--weight-decay", "0")
    _, after = bench.train(feeds={"i": integers([0, 0, 2])}, steps=1, rate=0.5)
    expect_near(after["e"], [[1, 1], [1, 1], [0.5, 0.5]])


def test_clipping_uses_the_global_norm(bench):
    model = build("p = Mul(a, three) q = Mul(b, four) L = Add(p, q)",
                  {"a": floats(0), "b": floats(0), "three": floats(3), "four": floats(4)})
    options = ["--freeze", "three", "--freeze", "four", "--clip-norm", "1"]
    _, found = bench.probe(model, *options)
    assert bench.log[0]["grad_norm"] == 5
    expect_near(found["a"], 0.6, 1e-6)
    expect_near(found["b"], 0.8, 1e-6)


def test_tied_parameter_counts_once_in_the_norm(bench):
    model = build("p = Mul(a, x) q = Add(p, a) L = ReduceMean <keepdims = 0>(q)", {"a": floats(0)},
                  inputs="float[2] x")
    for micro_batches in (1, 2):
        _, found = bench.probe(model, "--clip-norm", "1", "--micro-batches", micro_batches,
                               feeds={"x": floats([2, 4, 2, 4][:2 * micro_batches])})
        assert bench.log[0]["grad_norm"] == 4
        expect_near(found["a"], 1, 1e-6)


def test_rows_that_fill_no_step_are_dropped(bench):
    model = build("y = Mul(x, w) L = ReduceMean <keepdims = 0>(y)", {"w": floats(1)},
                  inputs="float[2] x")
    bench.compile(model)
    losses, _ = bench.train(feeds={"x": floats([1, 3, 5, 7, 100])}, steps=4, rate=0)
    assert losses == [2, 6, 2, 6], losses
    result = bench.start("--steps", 1, feeds={"x": floats([1, 3, 5, 7, 100])})
    assert "last 1 of 5 samples" in result.stdout, result.stdout
    result = bench.start("--steps", 1, feeds={"x": floats([1])})
    assert result.returncode == 1
    expect_text(result, "1 samples", "takes 2")


POINTS = [-90, -1, -1e-8, 0, 1e-8, 1, 90, np.inf, -np.inf, np.nan]
FUNCTIONS = {
    "Exp": np.exp, "Tanh": np.tanh, "Sin": np.sin, "Cos": np.cos, "Log": np.log,
    "Softplus": lambda x: np.logaddexp(0, x), "Mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Atan": np.arctan, "Sqrt": np.sqrt,
    "Erf": np.vectorize(math.erf)}


def test_functions_need_no_math_library(bench):
    with np.errstate(all="ignore"):
        for kind, element in (("float", np.float32), ("double", np.float64)):
            for name, function in FUNCTIONS.items():
                model = build(f"Y = {name}(x) Z = Mul(Y, w) L = ReduceMean <keepdims = 0>(Z)",
                              {"w": np.array(1, element)}, inputs=f"{kind}[10] x",
                              outputs=f"{kind} L, {kind}[10] Y", opset=18)
                bench.compile(model)
                x = np.array(POINTS, element)
                found = bench.predict("Y", {"x": x})
                compare_function(name, element, x, found, function(x.astype(np.float64)))


def compare_function(name, element, x, found, expected):
    """Within 4 units in the last place; Mish may be 0 or NaN at minus infinity."""
    with np.errstate(all="ignore"):
        for i, value in enumerate(x):
            if name == "Mish" and np.isneginf(value):
                assert np.isnan(found[i]) or found[i] == 0
                continue
            wanted = element(expected[i])
            if not np.isfinite(wanted):
                assert np.array_equal(found[i], wanted, equal_nan=True), (name, value, found[i])
                continue
            limit = 4 * np.finfo(element).eps * abs(wanted) + np.finfo(element).tiny
            assert abs(found[i] - wanted) <= limit, (name, element, value, found[i], wanted)


def test_gradients_of_functions_are_finite_at_large_values(bench):
    x = floats([-90, -1, -1e-8, 0, 1e-8, 1, 90])
    wide = x.astype(np.float64)
    gradients = {"Tanh": 1 - np.tanh(wide)**2, "Sigmoid": 1 / (2 + np.exp(-wide) + np.exp(wide)),
                 "Softplus": 1 / (1 + np.exp(-wide)), "Sin": np.cos(wide),
                 "Erf": 2 / np.sqrt(np.pi) * np.exp(-wide * wide)}
    for name, expected in gradients.items():
        _, found = bench.probe(build(f"Y = {name}(x) L = ReduceSum <keepdims = 0>(Y)", {"x": x}))
        # The step itself rounds x - gradient.
        step = np.spacing(np.maximum(np.abs(x), 1))
        assert (np.abs(found["x"] - expected) <= 2e-6 + step).all(), (name, found["x"], expected)


def test_comparisons_with_nan_are_kept(bench):
    model = build("n = IsNaN(x) Y = Where(n, zero, x) Z = Mul(x, null) O = Add(Z, one) "
                  "i = IsInf(x) I = Cast <to = 1>(i) P = Mul(Y, w) "
                  "L = ReduceMean <keepdims = 0>(P)",
                  {"w": floats(1), "zero": floats(0), "null": floats(0), "one": floats(1)},
                  inputs="float[4] x", outputs="float L, float[4] Y, float[4] O, float[4] I")
    bench.compile(model, "--train", "w")
    feeds = {"x": floats([np.nan, 1, np.inf, 2])}
    np.testing.assert_array_equal(bench.predict("Y", feeds), floats([0, 1, np.inf, 2]))
    np.testing.assert_array_equal(bench.predict("O", feeds), floats([np.nan, 1, np.nan, 1]))
    np.testing.assert_array_equal(bench.predict("I", feeds), floats([0, 0, 1, 0]))


def test_slices_at_odd_offsets(bench):
    model = build("h = Slice(a, one, three, axis) g = Cast <to = 1>(h) Y = Mul(g, w) "
                  "L = ReduceSum <keepdims = 0>(Y)",
                  {"a": np.array([[1, 2, 3]], np.float16), "w": floats([[1, 1]]),
                   "one": integers([1]), "three": integers([3]), "axis": integers([1])})
    _, found = bench.probe(model, "--train", "w")
    expect_near(found["w"], [[2, 3]], 0)
    model = build("s = Slice(x, one, five, axis) t = Exp(s) Y = Mul(t, w) "
                  "L = ReduceMean <keepdims = 0>(Y)",
                  {"w": floats(1), "one": integers([1]), "five": integers([5]),
                   "axis": integers([1])}, inputs="float[5, 7] x")
    x = floats(np.arange(35).reshape(5, 7) / 35)
    loss, _ = bench.probe(model, feeds={"x": x})
    expect_near(loss, np.exp(x[:, 1:5]).mean())


def test_product_over_an_odd_extent(bench):
    random = np.random.default_rng(5)
    x, w = (random.normal(size=shape).astype(np.float32) for shape in ((21, 249), (249, 13)))
    model = build("y = MatMul(x, w) L = ReduceSum <keepdims = 0>(y)", {"w": w},
                  inputs='float["B", 249] x')
    for rows in (3, 7):
        bench.compile(model, "--dim", f"B={rows}")
        losses, after = bench.train(feeds={"x": x}, steps=2, rate=1)
        expect_near(losses[0], (x[:rows].astype(np.float64) @ w).sum(), 2e-5)
        expected = w - x[:2 * rows].sum(0)[:, None]
        expect_near(after["w"], np.broadcast_to(expected, w.shape), 1e-5)


def test_weights_at_odd_places_of_a_file(bench):
    first, second = floats([1, 2, 3]), floats([4, 5, 6, 7, 8])
    bench.path("weights.bin").write_bytes(b"\0" * 4 + first.tobytes() + second.tobytes())
    model = build("p = ReduceSum <keepdims = 0>(a) q = ReduceMax <keepdims = 0>(b) L = Add(p, q)",
                  {"a": first, "b": second})
    for tensor, offset in zip(model.graph.initializer, (4, 16)):
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = 1
        for key, value in (("location", "weights.bin"), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
    bench.compile(model)
    losses, after = bench.train()
    assert losses == [14]
    expect_near(after["a"], [0, 1, 2], 0)
    expect_near(after["b"], [4, 5, 6, 7, 7], 0)


def test_executable_needs_an_old_c_library_only(bench):
    bench.compile(build("y = Exp(w) L = ReduceSum <keepdims = 0>(y)", {"w": floats([1, 2])}))
    text = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", bench.path("train")],
                          capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", text)]
    assert versions and max(versions) <= (2, 36), max(versions)
    assert "GLIBCXX" not in text


run_tests(globals(), sys.argv[1:])
