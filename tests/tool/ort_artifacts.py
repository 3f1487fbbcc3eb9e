"""ONNX Runtime's training artifacts: shipped gradients, and sgtc's own, give its losses.

usage: ort_artifacts.py [TEST...], with the reference data in $SGTC_SHARED/data/ort_training_api
"""

import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper

from harness import build, expect_near, expect_text, floats, initial_values, run_tests

DATA = pathlib.Path(os.environ["SGTC_SHARED"]) / "data" / "ort_training_api"
# ONNX Runtime's own losses of four steps at a learning rate of 0.001. It computes 1 - beta^t in
# float32, which loses up to 3e-5 of it.
LOSSES = [2.1786246, 0.3605093, 0.0512532, 0.0090416]
CHECKPOINT = ["--ort-checkpoint", DATA / "checkpoint.ckpt"]
OPTIMIZER = ["--ort-optimizer", DATA / "adamw.onnx"]


def dims(rows):
    sizes = {"input-0_dim0": rows, "input-0_dim1": 784, "output-0_dim0": rows}
    return [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]


def batch():
    text = (DATA / "input-0.in").read_text().split("\n", 1)[1]
    values = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    return {"input-0": floats(values).reshape(2, 784), "labels": np.array([1, 1], np.int32)}


def train_artifact(bench, name, rows=2, options=()):
    result = bench.sgtc(DATA / name, "-o", "train", *CHECKPOINT, *OPTIMIZER, *dims(rows), *options)
    assert result.returncode == 0, result.stderr
    return bench.train(feeds=batch(), steps=4, rate=0.001)


def test_shipped_gradients_train_as_onnx_runtime_does(bench):
    losses, shipped = train_artifact(bench, "training_model.onnx")
    expect_near(losses, LOSSES, 2e-7)
    losses, own = train_artifact(bench, "eval_model.onnx")
    expect_near(losses, LOSSES, 2e-7)
    assert shipped.keys() == own.keys() == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}
    for name, value in own.items():
        expect_near(shipped[name], value, 1e-6)


def test_micro_batches_of_shipped_gradients(bench):
    losses, _ = train_artifact(bench, "training_model.onnx", 1, ["--micro-batches", "2"])
    expect_near(losses, LOSSES, 2e-7)


def test_frozen_parameters_keep_their_values(bench):
    result = bench.sgtc(DATA / "training_model.onnx", "-o", "train", *CHECKPOINT, *OPTIMIZER,
                        *dims(2), "--freeze", "fc1.*")
    assert result.returncode == 0, result.stderr
    _, before = bench.train(feeds=batch(), steps=0)
    _, after = bench.train(feeds=batch(), steps=1)
    assert np.array_equal(before["fc1.weight"], after["fc1.weight"])
    assert not np.array_equal(before["fc2.weight"], after["fc2.weight"])


def optimizer_file(bench, *nodes):
    graph = helper.make_graph(list(nodes), "optimizer", [], [helper.make_tensor_value_info(
        "done", onnx.TensorProto.BOOL, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("com.microsoft", 1)])
    return bench.write_model(model, "optimizer.onnx")


def vendor_node(op, outputs, **attributes):
    return helper.make_node(op, [], outputs, domain="com.microsoft", **attributes)


def small_model():
    return build("p = Mul(w, x) L = ReduceSum <keepdims = 0>(p)", {"w": floats([1, 2])},
                 inputs="float[2] x")


def test_optimizer_files(bench):
    x = floats([3, 4])
    clip = vendor_node("InplaceClipGradNorm", ["clipped"], max_norm=1.0, norm_type="fro")
    sgd = vendor_node("SGDOptimizerV2", ["done"])
    adamw = vendor_node("AdamWOptimizer", ["done"], alpha=0.5, beta=0.75, epsilon=0.5,
                        weight_decay=0.25, adam_mode=0, correct_bias=1)
    clipped = floats([1, 2]) - 0.1 * x / (5 + 1e-6)
    decayed = floats([1, 2]) * (1 - 0.1 * 0.25) - 0.1 * x / (x + 0.5)
    for nodes, expected in (([clip, sgd], clipped), ([adamw], decayed)):
        path = optimizer_file(bench, *nodes)
        result = bench.sgtc(bench.write_model(small_model()), "-o", "train", "--ort-optimizer",
                            path)
        assert result.returncode == 0, result.stderr
        _, after = bench.train(feeds={"x": x}, rate=0.1)
        expect_near(after["w"], expected, 1e-6)


def test_refusals(bench):
    lamb = optimizer_file(bench, vendor_node("LambOptimizer", ["done"]))
    expect_text(bench.refuse(small_model(), "--ort-optimizer", lamb), "LambOptimizer",
                "AdamWOptimizer or SGDOptimizerV2")
    result = bench.sgtc(DATA / "eval_model.onnx", *OPTIMIZER, "--eps", "1")
    assert result.returncode == 2
    expect_text(result, "--eps", "--ort-optimizer")
    damaged = bench.path("damaged.ckpt")
    damaged.write_bytes((DATA / "checkpoint.ckpt").read_bytes()[:1000])
    expect_text(bench.refuse(small_model(), "--ort-checkpoint", damaged), "damaged.ckpt",
                "is damaged")
    expect_text(bench.refuse(small_model(), *CHECKPOINT), "fc1.bias", "no input of the model")


def ignoring_artifact():
    """Gradients of a loss that divides by the count of labels that are not ignored."""
    model = build("z = Add(x, b) L, p = SoftmaxCrossEntropyLoss <ignore_index = -100>(z, labels)",
                  {"b": floats([0.1, 0.2, 0.3]), "one": floats(1), "axes": np.array([0])},
                  inputs="float[1, 3] x, int64[1] labels, float[3] buffer, bool[1] reset")
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.node.extend([
        helper.make_node("SoftmaxCrossEntropyLossGrad", ["one", "p", "labels"], ["z_grad"],
                         domain="com.microsoft", ignore_index=-100),
        helper.make_node("ReduceSum", ["z_grad", "axes"], ["b_grad"], keepdims=0),
        helper.make_node("InPlaceAccumulatorV2", ["buffer", "b_grad", "reset"], ["done"],
                         domain="com.microsoft")])
    return model


def test_losses_that_do_not_split_are_refused_with_shipped_gradients(bench):
    model = ignoring_artifact()
    options = ["--micro-batches", "2", "--train", "b"]
    expect_text(bench.refuse(model, *options), "L", "eval_model.onnx", "mean-of-means")
    x, labels = floats([[1, 2, 3], [4, 5, 7]]), np.array([0, 1])
    bench.compile(model, *options, "--loss-average", "mean-of-means")
    _, after = bench.train(feeds={"x": x, "labels": labels})
    bias = initial_values(model)["b"]
    scores = x + bias
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    gradient = (probabilities - np.eye(3, dtype=np.float32)[labels]).mean(0)
    expect_near(after["b"], bias - gradient, 1e-6)


run_tests(globals(), sys.argv[1:])
