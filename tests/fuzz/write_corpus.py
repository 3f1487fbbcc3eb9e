"""Writes the seed corpus: write_corpus.py FOLDER. Needs SGTC and SGTC_MODEL (tests/tool/harness.py).

For each operator the smallest of ONNX's own node tests that sgtc plans, with its float inputs as
parameters and the sum of its outputs as the loss; small models of several operators; and the
smallest models of sgtc-model.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
from harness import SGTC, SGTC_MODEL, build, floats, integers  # noqa: E402
from small_models import language_model, perceptron  # noqa: E402

MOST_BYTES = 3000


def with_loss(model, outputs):
    """Appends the sum of all float outputs as the only output."""
    graph, total = model.graph, None
    for name in outputs:
        graph.node.append(helper.make_node("ReduceSum", [name], [name + ".sum"], keepdims=0))
        if total:
            graph.node.append(helper.make_node("Add", [total, name + ".sum"], [name + ".total"]))
        total = name + (".total" if total else ".sum")
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(total, onnx.TensorProto.FLOAT, []))
    return model


def trained_case(case):
    """The node test with constants for integers and parameters for floats, or None."""
    inputs, outputs = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.doc_string = ""
    names = [value.name for value in model.graph.input]
    if len(model.graph.node) != 1 or len(names) != len(inputs):
        return None
    if not all(isinstance(value, np.ndarray) for value in (*inputs, *outputs)):
        return None
    if not any(value.dtype == np.float32 for value in inputs):
        return None
    del model.graph.input[:]
    for name, value in zip(names, inputs):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    floating = [info.name for info, value in zip(model.graph.output, outputs)
                if value.dtype == np.float32]
    return with_loss(model, floating) if floating else None


def is_planned(model):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model)
        command = [SGTC, path, "--stop-after=plan", "--on-unsupported=fallback"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def node_tests():
    smallest = {}
    for case in load_model_tests(kind="node"):
        model = trained_case(case)
        if model is None:
            continue
        data = model.SerializeToString()
        known = smallest.setdefault(case.model.graph.node[0].op_type, [])
        if len(data) <= MOST_BYTES:
            known.append(data)
    models = {}
    for op, candidates in smallest.items():
        for data in sorted(candidates, key=len)[:4]:
            if is_planned(data):
                models["op_" + op.lower()] = data
                break
    return models


def loop_body(op, **attributes):
    """A Loop or Scan that carries a vector and multiplies it by w in each iteration."""
    scalar = helper.make_tensor_value_info
    floating, boolean, integer = (onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL,
                                  onnx.TensorProto.INT64)
    step = helper.make_node("Mul", ["state", "w"], ["next"])
    copied = helper.make_node("Identity", ["next"], ["element"])
    if op == "Loop":
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["on"]), step, copied], "body",
            [scalar("i", integer, []), scalar("go", boolean, []), scalar("state", floating, [2])],
            [scalar("on", boolean, []), scalar("next", floating, [2]),
             scalar("element", floating, [2])])
        inputs = ["trips", "", "w"]
    else:
        body = helper.make_graph(
            [helper.make_node("Add", ["state", "row"], ["next"]), copied], "body",
            [scalar("state", floating, [2]), scalar("row", floating, [2])],
            [scalar("next", floating, [2]), scalar("element", floating, [2])])
        inputs = ["w", "rows"]
    node = helper.make_node(op, inputs, ["last", "all"], body=body, **attributes)
    model = build("L = ReduceSum <keepdims = 0>(w)", {
        "w": floats([1, 2]), "rows": floats([[1, 2], [3, 4], [5, 6]]), "trips": np.array(3)})
    del model.graph.node[:]
    model.graph.node.append(node)
    return with_loss(model, ["last", "all"])


def written_models():
    weights = {"w": floats([[1, 2, 3], [4, 5, 6]]), "b": floats([1, 2, 3])}
    classifier = ("z = MatMul(x, w) l = Add(z, b) "
                  "L = SoftmaxCrossEntropyLoss <ignore_index = 0>(l, y)")
    image = ("c = Conv <pads = [1, 1, 1, 1]>(x, k) n, m, v = BatchNormalization <training_mode = 1>"
             "(c, s, t, mean, var) r = Relu(n) p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]>"
             "(r) f = Flatten(p) q = MatMul(f, h) L = ReduceMean <keepdims = 0>(q)")
    return {
        "classifier": build(classifier, weights, inputs="float[4, 2] x, int64[4] y"),
        "symbolic": build(classifier, weights, inputs='float["B", 2] x, int64["B"] y'),
        "image": build(image, {
            "k": floats(np.ones((2, 1, 3, 3))), "s": floats([1, 1]), "t": floats([0, 0]),
            "mean": floats([0, 0]), "var": floats([1, 1]), "h": floats(np.ones((8, 1)))},
            inputs="float[2, 1, 4, 4] x"),
        "branch": build("c = Constant <value = bool {1}>() "
                        "v = If (c) <then_branch = a () => (float[2] p) { p = Tanh(u) }, "
                        "else_branch = e () => (float[2] n) { n = Neg(u) }> "
                        "L = ReduceSum <keepdims = 0>(v)", {"u": floats([1, 2])}),
        "loop": loop_body("Loop"),
        "scan": loop_body("Scan", num_scan_inputs=1),
        "shapes": build("s = Shape(w) r = ReduceProd <keepdims = 0>(s) m = Constant <value = int64[1]"
                        " {-1}>() f = Reshape(w, m) k = Cast <to = 1>(r) d = Div(f, k) "
                        "L = ReduceSum <keepdims = 0>(d)", weights),
        "gru": build("x, h = GRU <hidden_size = 2>(s, w, r) L = ReduceSum <keepdims = 0>(h)", {
            "s": floats(np.ones((3, 2, 2))), "w": floats(np.ones((1, 6, 2))),
            "r": floats(np.ones((1, 6, 2)))}),
        "padded": build("h = Gather(table, i) d, k = Dropout <seed = 3>(h, p, on) "
                        "q = ReduceMean <axes = [1]>(d) L = ReduceMean <keepdims = 0>(q)", {
                            "table": floats(np.ones((5, 3))), "p": np.array(0.5, np.float32),
                            "on": np.array(True)}, inputs="int64[2, 4] i"),
        "indices": build("t, u = TopK(w, two) g = GatherElements(w, u) c = Concat <axis = 1>(t, g) "
                         "e = ScatterND(c, at, b) L = ReduceSum <keepdims = 0>(e)", {
                             **weights, "two": integers([2]), "at": integers([[0], [1]]),
                             "b": floats(np.ones((2, 4)))}),
        "language": language_model(2, 0.1),
        "perceptron": perceptron(8),
    }


def sgtc_models():
    models = {}
    for name, arguments in {
            "mlp": ["mlp", "--inputs", "3", "--hidden", "4", "--classes", "2", "--batch", "2"],
            "cnn": ["cnn", "--channels", "1", "--size", "4", "--widths", "2", "--classes", "2",
                    "--batch", "2"],
            "gpt2": ["gpt2", "--layers", "1", "--width", "8", "--heads", "2", "--vocab", "11",
                     "--seq", "4", "--batch", "1"],
            "llama": ["llama", "--layers", "1", "--width", "8", "--heads", "2", "--kv-heads", "1",
                      "--hidden", "8", "--vocab", "11", "--seq", "4", "--batch", "1"]}.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            result = subprocess.run([SGTC_MODEL, *arguments, "-o", path], capture_output=True,
                                    text=True, check=False)
            if result.returncode != 0:
                sys.exit(f"sgtc-model {' '.join(arguments)}: {result.stderr}")
            models["model_" + name] = path.read_bytes()
    return models


def main():
    folder = pathlib.Path(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    written = {name: model.SerializeToString() for name, model in written_models().items()}
    for name, data in written.items():
        if not is_planned(data):
            sys.exit(f"{name} is not planned")
    models = {**node_tests(), **written, **sgtc_models()}
    for name, data in models.items():
        (folder / (name + ".onnx")).write_bytes(data)
    print(f"{len(models)} models, {sum(map(len, models.values()))} bytes in {folder}")


if __name__ == "__main__":
    main()
