"""Operator semantics that other tools got wrong: values and gradients of small graphs.

Expected values follow by hand from the definition of the operator. import_cases.py [TEST...]
"""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import build, expect_near, expect_text, floats, integers, run_tests

NORMALIZED = [[[-1.069043, -0.534522]], [[0, 1.603565]]]


def normalization_model(momentum, weights, **more):
    return build(
        f"Y, M, V = BatchNormalization <training_mode = 1, epsilon = 1e-5, momentum = {momentum}>"
        "(x, scale, bias, mean, var) P = Mul(Y, c) L = ReduceSum <keepdims = 0>(P)",
        {"x": floats([[[1, 2]], [[3, 6]]]), "scale": floats([1]), "bias": floats([0]),
         "mean": floats([0]), "var": floats([1]), "c": floats(weights).reshape(2, 1, 2)},
        opset=15, **more)


def test_batch_normalization_ignores_statistics_in_training(bench):
    for momentum, mean, variance in ((0.0, 3, 3.5), (0.9, 0.3, 1.25), (1.0, 0, 1)):
        model = normalization_model(momentum, [1, 0, 0, 0], observe={"Y": [2, 1, 2]})
        bench.compile(model, "--freeze", "c")
        losses, after = bench.train()
        expect_near(losses[0], -1.069043)
        expect_near(-after["see_Y"], NORMALIZED)
        expect_near(after["mean"], [mean])
        expect_near(after["var"], [variance])
        gradient = floats([[[1, 2]], [[3, 6]]]) - after["x"]
        np.testing.assert_allclose(gradient.ravel(), [0.24817, -0.20999, -0.13363, 0.09545],
                                   atol=1e-5)


def test_batch_normalization_of_a_sum_has_no_gradient(bench):
    _, gradients = bench.probe(normalization_model(0.9, [1, 1, 1, 1]), "--freeze", "c")
    np.testing.assert_allclose(gradients["x"], 0, atol=1e-6)


def convolutional_model():
    return build(
        "h = Conv <pads = [1, 1, 1, 1]>(x, w) "
        "n, m, v = BatchNormalization <training_mode = 1>(h, scale, bias, mean, var) "
        "f = Reshape(n, shape) z = Gemm(f, g) L = SoftmaxCrossEntropyLoss(z, labels)",
        {"w": floats(np.arange(18).reshape(2, 1, 3, 3) / 9), "scale": floats([1, 1]),
         "bias": floats([0, 0]), "mean": floats([0, 0]), "var": floats([1, 1]),
         "shape": integers([3, -1]), "g": floats(np.arange(96).reshape(32, 3) % 5 / 5),
         "unused": floats([1])},
        inputs="float[3, 1, 4, 4] x, int64[3] labels")


CONVOLUTION_FEEDS = {"x": floats(np.arange(48).reshape(3, 1, 4, 4) % 7 / 7),
                     "labels": integers([0, 1, 2])}


def test_default_trainable_tensors(bench):
    model = convolutional_model()
    result = bench.compile(model)
    expect_text(result, "warning", '"unused"')
    _, after = bench.train(feeds=CONVOLUTION_FEEDS, rate=0.1)
    changed = [t.name for t in model.graph.initializer
               if t.name in after and not np.array_equal(after[t.name], numpy_helper.to_array(t))]
    assert changed == ["w", "scale", "bias", "mean", "var", "g"], changed
    assert sorted(after) == ["bias", "g", "mean", "scale", "var", "w"], sorted(after)


def test_untrainable_tensors_are_refused_by_name(bench):
    for name, reason in (("mean", "running statistic"), ("shape", "int64|i64"),
                         ("unused", "no node uses")):
        result = bench.refuse(convolutional_model(), "--train", name)
        lines = [line for line in result.stderr.splitlines() if line.startswith("error")]
        assert len(lines) == 1 and name in lines[0], result.stderr
        assert any(word in lines[0] for word in reason.split("|")), result.stderr


def transposed_model(attributes, weights, shape):
    return build(f"Y = ConvTranspose <strides = [2], {attributes}>(x, w) "
                 "L = ReduceSum <keepdims = 0>(Y)",
                 {"x": floats([[[1, 2]]]), "w": floats([[weights]])}, observe={"Y": shape})


def test_transposed_convolution_padding(bench):
    cases = (('auto_pad = "SAME_UPPER"', [1, 1, 1], [1, 1, 3, 2], [3, 3, 1], [3, 2]),
             ('auto_pad = "SAME_LOWER"', [1, 1, 1], [1, 3, 2, 2], [2, 3, 3], [2, 3]),
             ('auto_pad = "VALID"', [1, 1, 1], [1, 1, 3, 2, 2], [3, 3, 3], [3, 3]),
             ("pads = [1, 1], output_padding = [1]", [1, 10, 100], [10, 102, 20, 200],
              [2, 3, 3], [110, 111]))
    for attributes, weights, output, weight_gradient, input_gradient in cases:
        _, gradients = bench.probe(transposed_model(attributes, weights, [1, 1, len(output)]))
        expect_near(gradients["see_Y"], [[output]])
        expect_near(gradients["w"], [[weight_gradient]])
        expect_near(gradients["x"], [[input_gradient]])


def gather_model(constant):
    tensors = {"e": floats([1, 2, 3, 4, 5]), "c": floats([1, 2, 4, 8])}
    if constant:
        tensors["i"] = integers([-1, -3, 0, -1])
    return build("Y = Gather(e, i) P = Mul(Y, c) L = ReduceSum <keepdims = 0>(P)", tensors,
                 inputs="" if constant else "int64[4] i", observe={"Y": [4]})


def test_negative_and_repeated_indices(bench):
    for constant in (True, False):
        feeds = {} if constant else {"i": integers([-1, -3, 0, -1])}
        loss, gradients = bench.probe(gather_model(constant), "--freeze", "c", feeds=feeds)
        assert loss == 55
        expect_near(gradients["see_Y"], [5, 3, 1, 5], 0)
        expect_near(gradients["e"], [4, 0, 2, 0, 9], 0)


def test_index_out_of_range(bench):
    bench.compile(gather_model(False))
    for index in (5, -6):
        result = bench.start("--steps", 1, feeds={"i": integers([0, 0, index, 0])})
        assert result.returncode == 1
        expect_text(result, "node ", "Y", f"index {index}", "extent 5")
    for index in (5, -6):
        result = bench.refuse(build("Y = Gather(e, i) L = ReduceSum <keepdims = 0>(Y)",
                                    {"e": floats([1, 2, 3, 4, 5]), "i": integers([0, index])}))
        expect_text(result, 'node "Y"', f"index {index}", "size 5")


def test_many_repeats_of_a_row(bench):
    model = build("Y = Gather(e, i) L = ReduceSum <keepdims = 0>(Y)",
                  {"e": floats([[0], [0], [0]])}, inputs="int64[1000000] i")
    _, gradients = bench.probe(model, feeds={"i": np.full(1000000, -1, np.int64)})
    expect_near(gradients["e"], [[0], [0], [1000000]], 0)


def test_other_gathers_take_negative_indices(bench):
    nodes = {"GatherElements": "Y = GatherElements <axis = 0>(e, i)",
             "GatherND": "Y = GatherND(e, i)",
             "ScatterND": "Y = ScatterND(e, i, u)"}
    for name, node in nodes.items():
        shape = {"GatherElements": [2], "GatherND": [2, 1], "ScatterND": [2, 1]}[name]
        tensors = {"e": floats([1, 2, 3])}
        if name == "ScatterND":
            tensors["u"] = floats([7, 8])
        size = 3 if name == "ScatterND" else 2
        model = build(f"{node} L = ReduceSum <keepdims = 0>(Y)", tensors,
                      inputs=f"int64[{', '.join(map(str, shape))}] i", observe={"Y": [size]})
        values = integers([-1, -3]).reshape(shape)
        _, gradients = bench.probe(model, feeds={"i": values})
        expect_near(gradients["see_Y"], [8, 2, 7] if name == "ScatterND" else [3, 1], 0)
        expect_near(gradients["e"], [0, 1, 0] if name == "ScatterND" else [1, 0, 1], 0)
        values[0] = -4
        result = bench.start("--steps", 1, feeds={"i": values})
        assert result.returncode == 1, name
        expect_text(result, "node ", "index -4", "extent 3")


def test_clip(bench):
    model = build("Y = Clip(x, , high) L = ReduceSum <keepdims = 0>(Y)",
                  {"x": floats([-2, 0.5, 3, 8]), "high": floats(6)}, opset=13, observe={"Y": [4]})
    _, gradients = bench.probe(model, "--freeze", "high")
    expect_near(gradients["see_Y"], [-2, 0.5, 3, 6], 0)
    expect_near(gradients["x"], [1, 1, 1, 0], 0)

    model = build("Y = Clip(x, low, high) L = ReduceSum <keepdims = 0>(Y)",
                  {"x": floats([-2, 0.5, 3, 8]), "low": floats(3), "high": floats(1)}, opset=13,
                  observe={"Y": [4]})
    _, gradients = bench.probe(model)
    expect_near(gradients["see_Y"], [1, 1, 1, 1], 0)
    expect_near(gradients["x"], [0, 0, 0, 0], 0)
    assert gradients["low"] == 0 and gradients["high"] == 4


def test_reshape_zero_and_minus_one(bench):
    model = build("Y = Reshape(x, shape) P = Mul(Y, w) L = ReduceMean <keepdims = 0>(P)",
                  {"shape": integers([0, -1]), "w": floats([1, 1, 1, 1, 1, 1])},
                  inputs='float["b", 2, 3] x', outputs='float L, float["b", 6] Y', opset=14)
    bench.compile(model, "--dim", "b=4,7")
    for rows in (4, 7):
        x = floats(np.arange(rows * 6).reshape(rows, 2, 3))
        found = bench.predict("Y", {"x": x}) if rows == 7 else None
        losses, _ = bench.train("--dim", f"b={rows}", feeds={"x": x})
        expect_near(losses[0], x.mean())
        if found is not None:
            expect_near(found, x.reshape(rows, 6), 0)
    model = build("Y = Reshape(w, shape) L = ReduceSum <keepdims = 0>(Y)",
                  {"shape": integers([0, 3]), "w": floats([[1, 2, 3], [4, 5, 6]])},
                  observe={"Y": [2, 3]})
    _, gradients = bench.probe(model)
    expect_near(gradients["see_Y"], [[1, 2, 3], [4, 5, 6]], 0)


def test_reshape_allows_zero(bench):
    nodes = ("Y = Reshape <allowzero = 1>(e, shape) S = ReduceSum <keepdims = 0>(Y) "
             "L = Add(S, w)")
    tensors = {"e": np.zeros([0, 2], np.float32), "w": floats(3)}
    loss, gradients = bench.probe(build(nodes, {**tensors, "shape": integers([0, 2])}, opset=14))
    assert loss == 3 and gradients["w"] == 1
    result = bench.refuse(build(nodes, {**tensors, "shape": integers([0, -1])}, opset=14))
    expect_text(result, "Y")


def cast_model(folded):
    return build("s = Sqrt(x) b = Cast <to = 9>(s) Y = Cast <to = 1>(b) P = Mul(Y, w) "
                 "L = ReduceSum <keepdims = 0>(P)",
                 {"w": floats([1, 1, 1]), **({"x": floats([-1, 0, 4])} if folded else {})},
                 inputs="" if folded else "float[3] x")


def test_cast_of_nan_to_bool(bench):
    for folded in (True, False):
        feeds = {} if folded else {"x": floats([-1, 0, 4])}
        options = ["--freeze", "x"] if folded else []
        _, gradients = bench.probe(cast_model(folded), *options, feeds=feeds)
        expect_near(gradients["w"], [1, 0, 1], 0)


def test_cast_out_of_range_is_the_same_folded_and_computed(bench):
    values = floats([300, -300, np.nan, np.inf, -np.inf])
    for onnx_type, low, high in ((TensorProto.INT8, -128, 127),
                                 (TensorProto.INT64, -2.0**63, 2.0**63)):
        expected = np.nan_to_num(np.clip(values, low, high))
        for folded in (True, False):
            node = f"i = Cast <to = {onnx_type}>(x) Y = Cast <to = 1>(i) P = Mul(Y, w) "
            model = build(node + "L = ReduceSum <keepdims = 0>(P)",
                          {"w": floats(np.ones(5) * 2.0**-20),
                           **({"x": values} if folded else {})},
                          inputs="" if folded else "float[5] x")
            bench.compile(model, *(["--freeze", "x"] if folded else []))
            _, after = bench.train(feeds={} if folded else {"x": values}, rate=2.0**-20)
            gradient = (floats(2.0**-20) - after["w"]) * 2.0**20
            expect_near(gradient, floats(expected), 1e-6)


def test_layer_normalization_with_one_output(bench):
    model = build("Y = LayerNormalization <axis = 1, epsilon = 1e-5>(x, scale) "
                  "L = ReduceSum <keepdims = 0>(Y)",
                  {"scale": floats([1, 2]), "x": floats([[[0, 2], [4, 6]]])},
                  observe={"Y": [1, 2, 2]})
    _, gradients = bench.probe(model, "--freeze", "x")
    expect_near(gradients["see_Y"], [[[-1.34164, -0.89443], [0.44721, 2.68328]]])
    expect_near(gradients["scale"], [-0.894426, 0.894426])


def test_layer_normalization_of_large_half_floats(bench):
    model = build("h = Cast <to = 10>(x) n = LayerNormalization <axis = 1>(h, scale) "
                  "Y = Cast <to = 1>(n) P = Mul(Y, w) L = ReduceSum <keepdims = 0>(P)",
                  {"scale": np.array([1, 1], np.float16), "w": floats([1, 1])},
                  inputs="float[1, 2] x")
    loss, gradients = bench.probe(model, feeds={"x": floats([[-1000, 1000]])})
    assert np.isfinite(loss)
    expect_near(gradients["w"], [-1, 1], 1e-3)


LOGITS = floats([[np.log(3), 0], [0, 0], [5, -5]])
LABELS = integers([0, 1, -100])


def likelihood_model(operator, reduction):
    node = f'{operator} <ignore_index = -100, reduction = "{reduction}">'
    nodes = (f"L = {node}(x, labels, w)" if operator.startswith("Softmax") else
             f"l = LogSoftmax <axis = 1>(x) L = {node}(l, labels, w)")
    if reduction == "none":
        nodes = nodes.replace("L = ", "Y = ") + " L = ReduceSum <keepdims = 0>(Y)"
    return build(nodes, {"x": LOGITS, "w": floats([1, 3])}, inputs="int64[3] labels",
                 observe={"Y": [3]} if reduction == "none" else ())


def test_weighted_cross_entropy_with_ignored_labels(bench):
    gradient = floats([[-0.0625, 0.0625], [0.375, -0.375], [0, 0]])
    for operator in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
        for reduction, expected, factor in (("mean", 0.5917809, 1), ("sum", 2.367124, 4),
                                            ("none", 2.367124, 4)):
            model = likelihood_model(operator, reduction)
            loss, found = bench.probe(model, "--freeze", "w", feeds={"labels": LABELS})
            expect_near(loss, expected, 1e-6)
            expect_near(found["x"], gradient * factor)
            if reduction == "none":
                expect_near(found["see_Y"], [0.287682, 2.079442, 0], 1e-6)


def test_model_without_operator_sets(bench):
    model = build("L = ReduceSum <keepdims = 0>(x)", {"x": floats([1, 2])})
    del model.opset_import[:]
    result = bench.compile(model)
    assert len(result.stderr.splitlines()) == 1
    expect_text(result, "warning", "no opset", "1 is assumed")


def test_weights_that_are_inputs_are_trained(bench):
    model = build("h = Gemm(X, W) a = Relu(h) y = Add(a, B) L = ReduceMean <keepdims = 0>(y)",
                  {"W": floats([[1, 2], [3, 4]]), "B": floats([1, 2])},
                  inputs="float[3, 2] X, float[2, 2] W, float[2] B")
    x = floats([[1, 2], [3, 4], [5, 6]])
    loss, gradients = bench.probe(model, feeds={"X": x})
    assert sorted(gradients) == ["B", "W"]
    expect_near(loss, (x @ floats([[1, 2], [3, 4]]) + floats([1, 2])).mean())
    expect_near(gradients["B"], [0.5, 0.5])
    expect_near(gradients["W"], [[1.5, 1.5], [2, 2]])


def test_reciprocal_and_atan(bench):
    for operator, gradient in (("Reciprocal", -0.25), ("Atan", 0.2)):
        _, found = bench.probe(build(f"L = {operator}(x)", {"x": floats(2)}))
        expect_near(found["x"], gradient, 1e-6)


def branch(operator):
    node = helper.make_node(operator, ["x"], ["out"])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    return helper.make_graph([node], "branch", [], [out])


def test_branch_on_a_shape_folds(bench):
    for shape, gradient in (([1], [2]), ([2], [2, 2])):
        model = build("s = Shape(x) n = Size(s) c = Equal(n, one) Y = Identity(c) "
                      "P = Mul(z, two) L = ReduceSum <keepdims = 0>(P)",
                      {"x": floats(np.ones(shape)), "one": integers(1), "two": floats(2)})
        model.graph.node[3].CopyFrom(helper.make_node(
            "If", ["c"], ["z"], then_branch=branch("Squeeze"), else_branch=branch("Identity")))
        _, found = bench.probe(model, "--freeze", "two")
        expect_near(found["x"], gradient, 0)


def test_unsupported_operators_are_listed_together(bench):
    model = build("a = Det(x) b = TfIdfVectorizer(x) d = Det(x) f = Cast <to = 1>(b) "
                  "g = ReduceSum <keepdims = 0>(f) h = Add(a, d) L = Add(g, h)",
                  {"x": floats([[1, 2], [3, 4]])})
    for node in model.graph.node:
        node.name = "node_" + node.output[0]
    expect_text(bench.refuse(model), "node_a", "node_b", "node_d", "Det", "TfIdfVectorizer")


def test_training_info_says_what_is_trained_and_how_it_begins(bench):
    model = build("p = Mul(a, b) L = ReduceSum <keepdims = 0>(p)",
                  {"a": floats([1, 2]), "b": floats([3, 4])})
    info = model.training_info.add()
    info.algorithm.name, info.initialization.name = "step", "start"
    info.update_binding.add(key="a", value="a_new")
    start = helper.make_node("Constant", [], ["start"],
                             value=numpy_helper.from_array(floats([5, 6])))
    info.initialization.node.append(start)
    info.initialization_binding.add(key="a", value="start")
    bench.compile(model)
    losses, after = bench.train()
    assert losses == [39]
    expect_near(after["a"], [2, 2], 0)
    expect_near(after["b"], [3, 4], 0)


def einsum_model(equation, a, b=None, shape=None, opset=17):
    operands = "a" if b is None else "a, b"
    tensors = {"a": a} if b is None else {"a": a, "b": b}
    return build(f'Y = Einsum <equation = "{equation}">({operands}) '
                 "L = ReduceSum <keepdims = 0>(Y)", tensors, opset=opset, observe={"Y": shape})


def test_einsum(bench):
    square = floats([[1, 2], [3, 4]])
    cases = (("i,i", floats([1, 2, 3]), floats([4, 5, 6]), 32, [4, 5, 6]),
             ("ii->i", square, None, [1, 4], np.eye(2)),
             ("ij,kl->il", square, floats([[1, 10]]), [[3, 30], [7, 70]], np.full([2, 2], 11)),
             ("a...b,b...", square, floats([1, 10]), [21, 43], [[1, 10], [1, 10]]))
    for equation, a, b, output, gradient in cases:
        model = einsum_model(equation, a, b, np.shape(output))
        _, found = bench.probe(model, *([] if b is None else ["--freeze", "b"]))
        expect_near(found["see_Y"], floats(output), 1e-6)
        expect_near(found["a"], floats(gradient), 1e-6)


def test_einsum_of_three_operands(bench):
    random = np.random.default_rng(1)
    a, b, c = (floats(random.normal(size=shape)) for shape in ([2, 3, 4], [4, 2], [2, 3, 2]))
    model = build('Y = Einsum <equation = "abc,cd,def->abd">(a, b, c) '
                  "L = ReduceSum <keepdims = 0>(Y)", {"a": a, "b": b, "c": c},
                  observe={"Y": [2, 3, 2]})
    _, found = bench.probe(model)
    expect_near(found["see_Y"], np.einsum("abc,cd,def->abd", a, b, c))
    expect_near(found["b"], np.einsum("abc,def->cd", a, c), 2e-5)


def test_einsum_with_ellipses_of_unequal_rank(bench):
    model = build('Y = Einsum <equation = "...,...->...">(a, b) L = ReduceSum <keepdims = 0>(Y)',
                  {"a": floats(2), "b": floats([[1, 2, 3], [4, 5, 6]])}, observe={"Y": [2, 3]})
    _, gradients = bench.probe(model)
    expect_near(gradients["see_Y"], [[2, 4, 6], [8, 10, 12]], 0)
    expect_near(gradients["a"], 21, 0)


run_tests(globals(), sys.argv[1:])
