"""Attention that a model spells out trains like the operators that it is written in.

A model whose weights of attention are an output keeps them, so it is the reference.
attention_cases.py [TEST...]
"""

import sys

import numpy as np
from onnx import helper, numpy_helper

from harness import build, expect_near, floats, integers, run_tests

BATCH, HEADS, LENGTH, DEPTH = 3, 4, 70, 6
WIDTH = HEADS * DEPTH
SCORES = f"float[{BATCH}, {HEADS}, {LENGTH}, {LENGTH}]"


def model(masked, shows_weights, constants=None, guarded=False):
    """`masked` turns the scores s into h; the output w of the softmax may be shown."""
    random = np.random.default_rng(5)
    tensors = {name: floats(random.normal(scale=0.3, size=(WIDTH, WIDTH))) for name in "abcd"}
    tensors |= {"split": integers([0, 0, HEADS, DEPTH]), "join": integers([0, 0, WIDTH])}
    constants = {"scale": floats(0.4), "zero": floats(0), **(constants or {})}
    parts = " ".join(
        f"{name}1 = MatMul(x, {weight}) {name}2 = Reshape({name}1, split) "
        f"{name} = Transpose <perm = {perm}>({name}2)"
        for name, weight, perm in (("q", "a", "[0, 2, 1, 3]"), ("k", "b", "[0, 2, 3, 1]"),
                                   ("v", "c", "[0, 2, 1, 3]")))
    guard = "n = IsNaN(w) y = Where(n, zero, w)" if guarded else "y = Identity(w)"
    result = build(
        f"{parts} p = MatMul(q, k) s = Mul(p, scale) {masked} w = Softmax <axis = -1>(h) {guard} "
        "m = MatMul(y, v) t = Transpose <perm = [0, 2, 1, 3]>(m) r = Reshape(t, join) "
        "z = MatMul(r, d) e = Sub(z, x) f = Mul(e, e) L = ReduceMean <keepdims = 0>(f)",
        tensors, inputs=f"float[{BATCH}, {LENGTH}, {WIDTH}] x, "
                        f"float[{BATCH}, 1, 1, {LENGTH}] mask",
        outputs="float L" + (f", {SCORES} w" if shows_weights else ""))
    for name, value in constants.items():
        node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))
        result.graph.node.insert(0, node)
    return result


def feeds(mask):
    random = np.random.default_rng(7)
    return {"x": floats(random.normal(size=(BATCH, LENGTH, WIDTH))), "mask": floats(mask)}


def plan_of(bench, *arguments, **options):
    path = bench.write_model(model(*arguments, **options))
    result = bench.sgtc(path, "--emit-plan")
    assert result.returncode == 0, result.stderr
    return result.stdout


def expect_same(bench, masked, mask, **options):
    """One kernel each way, and loss and gradients of the model that keeps its weights."""
    plan = plan_of(bench, masked, False, **options)
    assert "attention_grad" in plan and "reduce_max" not in plan, plan
    assert "attention" not in plan_of(bench, masked, True, **options)
    found = bench.probe(model(masked, False, **options), feeds=feeds(mask))
    wanted = bench.probe(model(masked, True, **options), feeds=feeds(mask))
    expect_near(found[0], wanted[0])
    for name in "abcd":
        expect_near(found[1][name], wanted[1][name], 2e-5)


def test_additive_mask_from_a_feed(bench):
    mask = np.zeros((BATCH, 1, 1, LENGTH))
    mask[0, ..., 50:] = np.finfo(np.float32).min
    mask[1, ..., :30] = -np.inf
    expect_same(bench, "h = Add(s, mask)", mask)


def test_a_sample_whose_keys_are_all_masked(bench):
    mask = np.zeros((BATCH, 1, 1, LENGTH))
    mask[1] = np.finfo(np.float32).min
    mask[2] = -1e4
    expect_same(bench, "h = Add(s, mask)", mask)


def test_causal_masks(bench):
    seen = np.tril(np.ones((LENGTH, LENGTH), bool))
    for low in (-np.inf, -1e4):
        lower = floats(np.where(seen, 0, low))
        unused = np.zeros((BATCH, 1, 1, LENGTH))
        expect_same(bench, "u = Add(lower, s) h = Add(u, mask)", unused, constants={"lower": lower})
        expect_same(bench, "h = Where(seen, s, low)", unused,
                    constants={"seen": seen, "low": floats(low)})


def test_queries_without_a_key_give_zeros_where_the_model_says_so(bench):
    mask = np.zeros((BATCH, 1, 1, LENGTH))
    mask[1] = -np.inf
    guarded = model("h = Add(s, mask)", False, guarded=True)
    loss, gradients = bench.probe(guarded, feeds=feeds(mask))
    reference = bench.probe(model("h = Add(s, mask)", True, guarded=True), feeds=feeds(mask))
    expect_near(loss, reference[0])
    assert all(np.isfinite(gradients[name]).all() for name in "abcd")
    assert np.abs(gradients["a"]).max() > 0


run_tests(globals(), sys.argv[1:])
