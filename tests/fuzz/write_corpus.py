"""Writes the seed corpus: write_corpus.py FOLDER. Needs SGTC and SGTC_MODEL (tests/tool/harness.py).

For each operator the smallest of ONNX's own node tests that sgtc plans, with its float inputs as
parameters and the sum of its outputs as the loss; small models of several operators; and the
smallest models of sgtc-model. And a checkpoint of ONNX Runtime.
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
from ort_checkpoint import checkpoint  # noqa: E402
from recorded_models import dropped_bias, recorded_calls, tied_copies  # noqa: E402
from small_models import perceptron  # noqa: E402

MOST_BYTES = 3000
# Need --on-unsupported=fallback, which is one of the choices of compile_model.cc.
SLOW, WITH_FALLBACK = ("Det", "DeformConv"), 6
# Models of more tensors need a choice from this one on.
FEW_TENSORS, WITH_MANY_TENSORS = 200, 24


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
    if model.graph.node[0].op_type in SLOW:
        model.model_version = WITH_FALLBACK
    del model.graph.input[:]
    for name, value in zip(names, inputs):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    floating = [info.name for info, value in zip(model.graph.output, outputs)
                if value.dtype == np.float32]
    return with_loss(model, floating) if floating else None


def refusal(data, *options):
    """What sgtc says against a model, with compile_model.cc's sizes; empty if it is planned."""
    sizes = {dim.dim_param for value in onnx.load_model_from_string(data).graph.input
             for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(data)
        command = [SGTC, path, "--stop-after=plan", "--on-unsupported=fallback",
                   *(f"--dim={name}=3" for name in sizes), *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stderr if result.returncode != 0 else ""


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
            if not refusal(data):
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


def with_domain(model, *domains):
    for domain in domains:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


def followed_algorithm():
    """A model whose file says how it is trained."""
    training = "ai.onnx.preview.training"
    model = with_domain(build("m = MatMul(x, W) p = Add(m, B)", {
        "W": floats(np.ones((3, 1))), "B": floats([0.5])}, inputs="float[2, 3] x",
                              outputs="float[2, 1] p"), training)
    info = model.training_info.add()
    info.algorithm.CopyFrom(onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17, "{training}": 1]> step (float R, float[2, 1] y) '
        "=> (float L) { d = Sub(p, y) q = Mul(d, d) L = ReduceMean <keepdims = 0>(q) "
        f'dW, dB = {training}.Gradient <xs = ["W", "B"], zs = ["x", "y"], y = "L">(W, B, x, y) '
        f"W2, V2 = {training}.Momentum <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, "
        "mode = \"nesterov\">(R, T, W, dW, V) T2 = Add(T, one) s = Mul(dB, R) B2 = Sub(B, s) }"
    ).graph)
    states = {"T": np.array(0), "one": np.array(1), "V": floats(np.zeros((3, 1)))}
    for name, value in states.items():
        info.algorithm.initializer.append(numpy_helper.from_array(value, name))
    for name in ("W", "B", "V", "T"):
        info.update_binding.add(key=name, value=name + "2")
    info.initialization_binding.add(key="W", value="first")
    info.initialization.CopyFrom(onnx.parser.parse_graph(
        "begin () => (float[3, 1] first) { first = RandomNormal <shape = [3, 1], seed = 2.0>() }"))
    return model


def given_gradients():
    """A model that computes its gradients itself, as ONNX Runtime's artifacts do."""
    return with_domain(build(
        "h = MatMul(x, w) n, mean, inverse = LayerNormalization <axis = -1>(h, s, t) "
        "p = Softmax(n) q = Mul(p, p) L = ReduceSum <keepdims = 0>(q) dp = Add(p, p) "
        "dn = com.microsoft.SoftmaxGrad_13 <axis = -1>(dp, p) "
        "dh, s_grad, t_grad = com.microsoft.LayerNormalizationGrad <axis = -1>"
        "(dn, h, s, mean, inverse) z = Transpose(x) w_grad = MatMul(z, dh) "
        "a = com.microsoft.InPlaceAccumulatorV2(wb, w_grad, reset) "
        "b = com.microsoft.InPlaceAccumulatorV2(sb, s_grad, reset) "
        "c = com.microsoft.InPlaceAccumulatorV2(tb, t_grad, reset)",
        {"w": floats([[1, 2, 3], [4, 5, 7]]), "s": floats([1, 1, 1]), "t": floats([0, 0, 0])},
        inputs="float[2, 2] x, float[2, 3] wb, float[3] sb, float[3] tb, bool[1] reset"),
                       "com.microsoft")


def external_data():
    """Weights in a file beside the model, which is the model's own file."""
    model = build("y = Mul(x, w) z = Add(y, b) L = ReduceSum <keepdims = 0>(z)",
                  {"w": floats([1, 2]), "b": floats([0])}, inputs="float[3, 2] x")
    for tensor, offset in zip(model.graph.initializer, ("16", "4")):
        size = str(len(tensor.raw_data))
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "model.onnx"), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=value)
    return model


def called_functions():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "own": 1]> test () => (float L) '
        "{ b = own.twice <scale = 2.0>(w) L = ReduceSum <keepdims = 0>(b) } "
        '<domain: "own", opset_import: ["": 17, "own": 1]> twice <scale>(x) => (z) '
        "{ y = own.once <by: float = @scale>(x) z = own.once <by: float = @scale>(y) } "
        '<domain: "own", opset_import: ["": 17]> once <by>(x) => (y) '
        "{ y = Elu <alpha: float = @by>(x) }")
    model.graph.initializer.append(numpy_helper.from_array(floats([1, -2, 3]), "w"))
    return model


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
        "attention": build(
            "q = MatMul(x, u) k = MatMul(x, v) t = Transpose <perm = [0, 2, 1]>(k) "
            "s = MatMul(q, t) m = Add(s, mask) p = Softmax(m) o = MatMul(p, x) "
            "n = LayerNormalization(o, scale) L = ReduceSum <keepdims = 0>(n)", {
                "u": floats(np.eye(4)), "v": floats(np.eye(4)), "scale": floats([1, 2, 3, 4]),
                "mask": floats(np.where(np.tri(3), 0, -1e9))}, inputs="float[2, 3, 4] x"),
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
        "sequences": build(
            "p = SplitToSequence(w, one) a = SequenceAt(p, first) e = SequenceErase(p, first) "
            "i = SequenceInsert(e, a) c = ConcatFromSequence <axis = 0>(i) n = SequenceLength(i) "
            "f = Cast <to = 1>(n) m = Mul(c, f) L = ReduceSum <keepdims = 0>(m)",
            {**weights, "one": np.array(1), "first": np.array(0)}),
        "activations": with_domain(build(
            "a = com.microsoft.BiasGelu(w, b) c = com.microsoft.FastGelu(a, b) "
            "d = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5>(c, w) "
            "L = ReduceSum <keepdims = 0>(d)", weights), "com.microsoft"),
        "functions": build(
            "e = Erf(w) c = Celu <alpha = 0.5>(e) m = Mish(c) r = ReduceLogSumExp(m, one) "
            'f = Einsum <equation = "ij,ik->jk">(r, w) L = ReduceSum <keepdims = 0>(f)',
            {**weights, "one": integers([1])}, opset=18),
        "movements": build(
            "d = DepthToSpace <blocksize = 2>(x) s = SpaceToDepth <blocksize = 2>(d) "
            'p = Pad <mode = "reflect">(s, pads) c = CumSum(p, last) t = Trilu(c, one) '
            "q = Squeeze(t, axis) r = ReverseSequence <time_axis = 1, batch_axis = 0>(q, lengths) "
            "L = ReduceSum <keepdims = 0>(r)", {
                "x": floats(np.ones((1, 4, 2, 2))), "pads": integers([0, 0, 1, 0, 0, 0, 1, 0]),
                "last": np.array(3), "one": np.array(1), "axis": integers([0]),
                "lengths": integers([1, 2, 3, 4])}, opset=18),
        "choices": build(
            "g = Greater(w, b) l = LessOrEqual(w, b) n = Not(l) a = And(g, n) o = Or(a, l) "
            "x = Xor(o, g) f = Floor(w) s = Sign(w) e = Equal(f, s) y = Or(x, e) i = IsNaN(w) "
            "z = Or(y, i) v = Where(z, w, b) m = ArgMax <axis = 1>(v) h = OneHot(m, three, sides) "
            "q = ReduceSum <keepdims = 0>(h) t = Size(w) c = Cast <to = 1>(t) d = Mul(q, c) "
            "k = ReduceSum <keepdims = 0>(v) L = Add(k, d)",
            {**weights, "three": np.array(3), "sides": floats([0, 1])}),
        "ranges": build(
            "r = Range(zero, three, one) f = Cast <to = 1>(r) e = EyeLike(w) u = Shape(w) "
            "c = ConstantOfShape <value = float[1] {2}>(u) m = Mod <fmod = 1>(w, c) "
            "x = Mul(m, e) y = Add(x, f) k = NonZero(f) t = Transpose(k) j = GatherND(b, t) "
            "p = Compress <axis = 1>(y, on) L1 = ReduceSum <keepdims = 0>(p) "
            "L2 = ReduceSum <keepdims = 0>(j) L = Add(L1, L2)",
            {**weights, "zero": np.array(0), "three": np.array(3), "one": np.array(1),
             "on": np.array([True, False, True])}),
        "integers": build(
            "q = QuantizeLinear(w, scale, zero) d = DequantizeLinear(q, scale, zero) "
            "p = MatMulInteger(q, other) s = Cast <to = 13>(p) x = BitShift <direction = "
            '"LEFT">(s, u) y = BitwiseAnd(x, u) z = BitwiseNot(y) c = Cast <to = 1>(z) '
            "k = ReduceSum <keepdims = 0>(c) e = Mul(d, w) t = ReduceSum <keepdims = 0>(e) "
            "L = Add(k, t)",
            {**weights, "scale": np.array(0.1, np.float32), "zero": np.array(3, np.uint8),
             "other": np.ones((3, 2), np.uint8), "u": np.array(1, np.uint64)}, opset=21),
        "noise": build(
            "n = RandomNormal <shape = [2, 3], seed = 1.0>() u = RandomUniformLike <seed = 2.0>(w) "
            "a = Bernoulli <seed = 3.0>(u) c = Mul(n, a) d = Mul(c, w) "
            "L = ReduceSum <keepdims = 0>(d)", weights),
        "regions": build(
            "a = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, i) "
            "m = MelWeightMatrix(one, length, rate, low, high) s = ReduceSum <keepdims = 0>(m) "
            "k = ReduceSum <keepdims = 0>(a) L = Mul(k, s)", {
                "x": floats(np.ones((1, 1, 3, 3))), "r": floats([[0, 0, 2, 2]]),
                "i": integers([0]), "one": np.array(1), "length": np.array(4),
                "rate": np.array(8), "low": np.array(0, np.float32),
                "high": np.array(4, np.float32)}),
        "algorithm": followed_algorithm(),
        "gradients": given_gradients(),
        "recorded": recorded_calls(),
        "tied": tied_copies(),
        "dropped": dropped_bias(),
        "external": external_data(),
        "calls": called_functions(),
        "perceptron": perceptron(8),
    }


def sgtc_models():
    models = {}
    for name, arguments in {
            "mlp": ["mlp", "--inputs", "3", "--hidden", "4", "--classes", "2", "--batch", "2"],
            "cnn": ["cnn", "--channels", "1", "--size", "4", "--widths", "2", "--classes", "2",
                    "--batch", "2"]}.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            result = subprocess.run([SGTC_MODEL, *arguments, "-o", path], capture_output=True,
                                    text=True, check=False)
            if result.returncode != 0:
                sys.exit(f"sgtc-model {' '.join(arguments)}: {result.stderr}")
            models["model_" + name] = path.read_bytes()
    return models


def with_room(data):
    """The model with options that have room for its tensors."""
    if not refusal(data, f"--max-tensors={FEW_TENSORS}"):
        return data
    model = onnx.load_model_from_string(data)
    model.model_version += WITH_MANY_TENSORS
    return model.SerializeToString()


def main():
    folder = pathlib.Path(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    written = {name: model.SerializeToString() for name, model in written_models().items()}
    for name, data in written.items():
        reason = refusal(data)
        if reason:
            sys.exit(f"{name} is not planned: {reason}")
    models = {**node_tests(), **written, **sgtc_models()}
    for name, data in models.items():
        (folder / (name + ".onnx")).write_bytes(with_room(data))
    (folder / "checkpoint.ckpt").write_bytes(checkpoint())
    print(f"{len(models)} models, {sum(map(len, models.values()))} bytes in {folder}")


if __name__ == "__main__":
    main()
