"""What docs/numerics.md says of values, folded when the model is compiled and computed by the program,
and of gradients where there is none or more than one.

numerics.py [TEST...]
"""

import sys

import numpy as np
from onnx import helper, numpy_helper

from harness import build, floats, integers, run_tests

NAN, INF = np.nan, np.inf
# Rows of a sample: every value is a vector of at most so many.
ROWS = 8
INT8, UINT8, INT32, INT64, BOOL, FLOAT16, UINT64, BFLOAT16 = 3, 2, 6, 7, 9, 10, 13, 16


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def prepend(graph, nodes):
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes + rest)


class Rules:
    """Nodes of a text in ONNX's form, each with the values it takes and gives.

    {y} is the result, {t} starts other names, and each keyword names a vector.
    """

    def __init__(self):
        self.rules = []

    def add(self, nodes, expected, tolerance=0, **inputs):
        self.rules.append((nodes, expected, tolerance, inputs))

    def model(self):
        """Each rule twice: of constants and of feeds."""
        nodes, constants, feeds, outputs, declared = [], [], {"keep": np.ones(ROWS, bool)}, [], []
        for i, (text, expected, _, inputs) in enumerate(self.rules):
            for way in ("folded", "computed"):
                prefix = f"{way}{i}"
                names = {"y": prefix + "y", "t": prefix + "t"}
                for name, values in inputs.items():
                    names[name] = prefix + name
                    if way == "folded":
                        constants.append(constant(names[name], values))
                        continue
                    feed, size = names[name] + "_feed", len(values)
                    feeds[feed] = np.concatenate([values, np.zeros(ROWS - size, values.dtype)])
                    declared.append(f"{TYPES[values.dtype.type]}[{ROWS}] {feed}")
                    nodes.append(f"{names[name]}_end = Constant <value = int64[1] {{{size}}}>() "
                                 f"{names[name]} = Slice({feed}, begin, {names[name]}_end)")
                nodes.append(text.format(**names))
                fill = ROWS - np.size(expected)
                nodes.append(
                    f"{prefix}_real = Cast <to = 11>({prefix}y) "
                    f"{prefix}_line = Reshape({prefix}_real, all) "
                    f"{prefix}_fill = Constant <value = int64[2] {{0, {fill}}}>() "
                    f"{prefix}_rows = Pad({prefix}_line, {prefix}_fill) "
                    f"{prefix} = Where(keep, {prefix}_rows, none)")
                outputs.append(f"double[{ROWS}] {prefix}")
        text = ("begin = Constant <value = int64[1] {0}>() all = Constant <value = int64[1] {-1}>() "
                "none = Constant <value = double {-7}>() " + " ".join(nodes) +
                " one = Cast <to = 1>(keep) P = Mul(one, w) L = ReduceMean <keepdims = 0>(P)")
        model = build(text, {"w": floats([1])}, inputs=", ".join([f"bool[{ROWS}] keep", *declared]),
                      outputs=", ".join(["float L", *outputs]), opset=21)
        prepend(model.graph, constants)
        return model, feeds

    def check(self, bench):
        model, feeds = self.model()
        bench.compile(model)
        arguments = ["--steps", 0]
        for i in range(len(self.rules)):
            for way in ("folded", "computed"):
                arguments += ["--predict", f"{way}{i}={bench.path(f'{way}{i}.npy')}"]
        result = bench.start(*arguments, feeds=feeds)
        assert result.returncode == 0, result.stderr
        for i, (text, expected, tolerance, _) in enumerate(self.rules):
            for way in ("folded", "computed"):
                found = np.load(bench.path(f"{way}{i}.npy"))[:np.size(expected)]
                compare(found, np.asarray(expected, np.float64), tolerance, f"{way}: {text}")


TYPES = {np.float32: "float", np.float64: "double", np.int32: "int32", np.int64: "int64",
         np.uint32: "uint32", np.bool_: "bool"}


def compare(found, expected, tolerance, what):
    """Equal with signs of zeros, or within the relative tolerance."""
    message = f"{what}\nfound {found}, expected {expected}"
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=0, err_msg=message)
    zeros = (found == 0) & (expected == 0)
    assert (np.signbit(found[zeros]) == np.signbit(expected[zeros])).all(), message


def test_rounding(bench):
    rules = Rules()
    small = floats([1.1754944e-38, -1e-45, 3e-45])
    rules.add("{y} = Mul({x}, {h})", floats([5.877472e-39, -1e-45, 1.4e-45]), x=small,
              h=floats([0.5, 1, 0.5]))
    rules.add("{y} = Add({x}, {x})", small + small, x=small)
    rules.add("{y} = Abs({x})", np.abs(small), x=small)
    # Of two nodes; contracted it would be 2**-24.
    rules.add("{t} = Mul({x}, {x}) {y} = Sub({t}, {c})", [0], x=floats([1 + 2.0**-12]),
              c=floats([1 + 2.0**-11]))
    rules.add("{t} = Mul({x}, {z}) {y} = Add({t}, {o})", [NAN, NAN, 1], x=floats([INF, NAN, 2]),
              z=floats([0, 0, 0]), o=floats([1, 1, 1]))
    rules.add("{y} = Neg({x})", [-0.0, 0.0], x=floats([0.0, -0.0]))
    rules.add("{y} = Add({x}, {x})", [-0.0], x=floats([-0.0]))
    rules.add("{y} = Sqrt({x})", [-0.0, NAN], x=floats([-0.0, -1]))
    rules.add("{y} = LayerNormalization({x}, {s})",
              np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25 + 1e-5), 1e-6,
              x=floats([10000, 10001, 10002, 10003]), s=floats([1, 1, 1, 1]))
    rules.add("{y} = Softmax({x})", [1, 0, 0], x=floats([1000, 0, -1000]))
    rules.add("{y} = LogSoftmax({x})", [0, -1000], 1e-6, x=floats([1000, 0]))
    rules.add("{y} = ReduceLogSumExp({x})", [1000 + np.log(2)], 1e-6, x=floats([1000, 1000]))
    rules.add("{y} = Pow({x}, {e})", [1, 0, 0, 4, 0], x=floats([0, 0, 0, -2, 0]),
              e=floats([0, 1, 2, 2, 0.5]))
    rules.check(bench)


def test_casts(bench):
    rules = Rules()
    x = floats([300.7, -300.7, NAN, INF, -INF, 1.9, -1.9, 0.5])
    for kind, expected in ((INT8, [127, -128, 0, 127, -128, 1, -1, 0]),
                           (UINT8, [255, 0, 0, 255, 0, 1, 0, 0]),
                           (INT32, [300, -300, 0, 2**31 - 1, -2**31, 1, -1, 0]),
                           (INT64, [300, -300, 0, 2.0**63, -2.0**63, 1, -1, 0]),
                           (UINT64, [300, 0, 0, 2.0**64, 0, 1, 0, 0]),
                           (BOOL, [1, 1, 1, 1, 1, 1, 1, 1])):
        rules.add(f"{{y}} = Cast <to = {kind}>({{x}})", expected, x=x)
        rules.add(f"{{t}} = Cast <to = 11>({{x}}) {{y}} = Cast <to = {kind}>({{t}})", expected, x=x)
    rules.add(f"{{y}} = Cast <to = {BOOL}>({{x}})", [0, 0, 1], x=floats([0.0, -0.0, 1e-45]))
    rules.add(f"{{y}} = Cast <to = {FLOAT16}>({{x}})",
              [65504, INF, 1, 1 + 2.0**-9, 0, 2.0**-24, 0, -0.0],
              x=floats([65504, 65520, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1e-8, 2.0**-24, 2.0**-25,
                        -1e-9]))
    rules.add(f"{{y}} = Cast <to = {BFLOAT16}>({{x}})", [1, 1 + 2.0**-6, INF, -INF, NAN],
              x=floats([1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, -3.4e38, NAN]))
    rules.add("{y} = Cast <to = 1>({x})", [INF, -INF, 1, NAN],
              x=np.array([1e300, -1e300, 1 + 1e-12, NAN]))
    whole = np.array([300, -1, 256, -129], np.int32)
    rules.add(f"{{y}} = Cast <to = {INT8}>({{x}})", [44, -1, 0, 127], x=whole)
    rules.add(f"{{y}} = Cast <to = {UINT8}>({{x}})", [44, 255, 0, 127], x=whole)
    rules.check(bench)


def test_integers(bench):
    rules = Rules()
    low, high = -2**31, 2**31 - 1
    wide = np.array([high, low, low, 7, -7], np.int32)
    rules.add("{y} = Add({x}, {z})", [low, high, 0], x=wide[:3], z=np.array([1, -1, low], np.int32))
    rules.add("{y} = Mul({x}, {z})", [-2, 0, low], x=wide[:3], z=np.array([2, 2, -1], np.int32))
    rules.add("{y} = Div({x}, {z})", [0, 0, low, 3, -3], x=wide,
              z=np.array([0, 0, -1, 2, 2], np.int32))
    rules.add("{y} = Mod({x}, {z})", [0, 0, 0, 1, 1], x=wide, z=np.array([0, 0, -1, 2, 2], np.int32))
    rules.add("{y} = Mod <fmod = 1>({x}, {z})", [0, 0, 0, 1, -1], x=wide,
              z=np.array([0, 0, -1, 2, 2], np.int32))
    rules.add('{y} = BitShift <direction = "LEFT">({x}, {z})', [2, 0, 0],
              x=np.array([1, 1, 1], np.uint32), z=np.array([1, 32, 2**31], np.uint32))
    rules.check(bench)


def test_maxima(bench):
    rules = Rules()
    mixed = floats([1, NAN, 2])
    for name in ("Max", "Min"):
        rules.add(f"{{y}} = {name}({{x}}, {{z}})", [NAN, NAN, NAN], x=floats([NAN, 1, NAN]),
                  z=floats([1, NAN, NAN]))
        rules.add(f"{{y}} = Reduce{name}({{x}})", [NAN], x=mixed)
    rules.add("{y} = ArgMax({x})", [1], x=mixed)
    # Two of three: the values, then the places.
    two = "{t}k = Constant <value = int64[1] {{3}}>() {t}v, {t}i = TopK({x}, {t}k) "
    rules.add(two + "{y} = Identity({t}v)", [NAN, 2, 1], x=mixed)
    rules.add(two + "{y} = Identity({t}i)", [1, 2, 0], x=floats([2, 3, 3, 1]))
    rules.add("{t}s = Constant <value = int64[3] {{1, 1, 3}}>() {t}r = Reshape({x}, {t}s) "
              "{y} = MaxPool <kernel_shape = [2]>({t}r)", [NAN, NAN], x=mixed)
    rules.add("{t}l = Constant <value = float {{3}}>() {t}h = Constant <value = float {{1}}>() "
              "{y} = Clip({x}, {t}l, {t}h)", [1, 1, NAN], x=floats([-2, 8, NAN]))
    empty = "{t}c = Constant <value = int64[1] {{0}}>() {t}e = Slice({x}, {t}c, {t}c) {y} = "
    for name, value in (("ReduceMax", -INF), ("ReduceMin", INF), ("ReduceSum", 0), ("ReduceProd", 1)):
        rules.add(empty + name + "({t}e)", [value], x=floats([5]))
    rules.add(empty + "ReduceMax({t}e)", [-2.0**63], x=integers([5]))
    rules.add("{t} = IsNaN({x}) {t}z = Sub({x}, {x}) {y} = Where({t}, {t}z, {x})", [1, NAN, 2],
              x=mixed)
    rules.add("{t} = IsNaN({x}) {t}n = Not({t}) {y} = Where({t}n, {x}, {o})", [1, 9, 2], x=mixed,
              o=floats([NAN, 9, NAN]))
    rules.check(bench)


def test_losses(bench):
    rules = Rules()
    scores = "{t}s = Constant <value = int64[2] {{2, 2}}>() {t}x = Reshape({x}, {t}s) "
    x = floats([np.log(3), 0, 0, 0])
    rules.add(scores + "{y} = SoftmaxCrossEntropyLoss <ignore_index = -1>({t}x, {l})", [NAN], x=x,
              l=integers([-1, -1]))
    rules.add(scores + "{y} = SoftmaxCrossEntropyLoss <ignore_index = -1>({t}x, {l}, {w})",
              [np.log(2)], 1e-6, x=x, l=integers([-1, 1]), w=floats([5, 3]))
    rules.add(scores + "{y} = SoftmaxCrossEntropyLoss({t}x, {l}, {w})",
              [(np.log(4 / 3) + 3 * np.log(2)) / 4], 1e-6, x=x, l=integers([0, 1]), w=floats([1, 3]))
    rules.check(bench)


class Slopes:
    """Gradients of the sum of results: {x}, {z} are trained, other names are constants."""

    def __init__(self):
        self.nodes, self.tensors, self.expected, self.constants = [], {}, {}, []

    def add(self, text, dx, x, z=None, dz=None, **constants):
        i = len(self.nodes)
        names = {"y": f"r{i}y", "t": f"r{i}t"}
        trained = {"x": (x, dx)} if z is None else {"x": (x, dx), "z": (z, dz)}
        for name, (value, gradient) in trained.items():
            names[name] = f"r{i}{name}"
            self.tensors[names[name]], self.expected[names[name]] = floats(value), floats(gradient)
        for name, value in constants.items():
            names[name] = f"r{i}{name}"
            self.constants.append(constant(names[name], value))
        self.nodes.append(text.format(**names) + f" r{i}_sum = ReduceSum <keepdims = 0>(r{i}y)")

    def check(self, bench):
        sums = ", ".join(f"r{i}_sum" for i in range(len(self.nodes)))
        model = build(" ".join(self.nodes) + f" L = Sum({sums})", self.tensors, opset=18)
        prepend(model.graph, self.constants)
        loss, found = bench.probe(model)
        assert not bench.log[0]["skipped"], loss
        for name, gradient in self.expected.items():
            np.testing.assert_allclose(found[name], gradient, rtol=0, atol=1e-6, err_msg=name)


def test_gradients_at_ties_and_bounds(bench):
    slopes = Slopes()
    slopes.add("{y} = Relu({x})", [0, 0, 1], [0.0, -0.0, 1])
    slopes.add("{y} = Abs({x})", [0, 1, -1], [0, 2, -2])
    for name in ("Sign", "Floor", "Ceil", "Round"):
        slopes.add(f"{{y}} = {name}({{x}})", [0, 0], [0, 1.5])
    for name, dx, dz in (("Max", [1, 1, 0], [0, 0, 1]), ("Min", [1, 0, 1], [0, 1, 0])):
        slopes.add(f"{{y}} = {name}({{x}}, {{z}})", dx, [1, 2, 1], z=[1, 1, 2], dz=dz)
    slopes.add("{y} = ReduceMax({x})", [1, 0, 0], [2, 2, 1])
    slopes.add("{y} = ReduceMin({x})", [1, 0, 0], [1, 1, 2])
    line = "{t} = Reshape({x}, {s}) "
    slopes.add(line + "{y} = MaxPool <kernel_shape = [2], strides = [2]>({t})", [1, 0, 1, 0],
               [3, 3, 1, 1], s=integers([1, 1, 4]))
    slopes.add(line + "{y} = GlobalMaxPool({t})", [1, 0, 0], [5, 5, 1], s=integers([1, 1, 3]))
    slopes.add("{y}, {t} = TopK({x}, {k})", [1, 0, 0], [2, 2, 1], k=integers([1]))
    for name, sign in (("max", 1), ("min", -1)):
        write = f'{{y}} = ScatterElements <reduction = "{name}">({{x}}, {{i}}, {{z}})'
        slopes.add(write, [1, 0], [sign, sign], z=[sign, 3 * sign, 3 * sign], dz=[0, 1, 0],
                   i=integers([0, 1, 1]))
    clip = "{y} = Clip({x}, {l}, {h})"
    slopes.add(clip, [0, 0, 1, 1, 0], [-1, 0, 1, 6, 7], l=floats(0), h=floats(6))
    slopes.add(clip, [0, 1, 1, 0], [0, 1, 6, 7], l=floats(1), h=floats(6))
    slopes.add("{y} = LeakyRelu <alpha = 0.25>({x})", [1, 0.25], [0, -1])
    slopes.add("{y} = PRelu({x}, {s})", [1, 0.25], [0, -1], s=floats([0.25]))
    slopes.add("{y} = Elu <alpha = 2.0>({x})", [2, 1], [0, 1])
    slopes.add("{y} = Celu <alpha = 2.0>({x})", [1, 1], [0, 1])
    slopes.add("{y} = Selu <alpha = 2.0, gamma = 3.0>({x})", [6, 3], [0, 1])
    slopes.check(bench)


def test_gradients_at_zeros(bench):
    slopes = Slopes()
    slopes.add("{y} = Pow({x}, {z})", [0, 1, 0], [0, 0, 0], z=[0, 1, 2], dz=[0, 0, 0])
    slopes.add("{y} = Pow({x}, {e})", [0, 1, -4, 0], [0, 0, -2, 0], e=floats([0, 1, 2, 2]))
    # An upstream gradient of 0 wins over an infinite or missing derivative.
    slopes.add("{t} = Pow({x}, {z}) {y} = Mul({t}, {n})", [0, 0, 0], [0, -2, 0], z=[0.5, 2, 1],
               dz=[0, 0, 0], n=floats([0, 0, 0]))
    slopes.add("{y} = ReduceL2({x})", [0, 0], [0, 0])
    slopes.add("{y} = ReduceL2({x})", [0.6, 0.8], [3, 4])
    slopes.add("{t} = Reshape({x}, {s}) {y} = LpPool <kernel_shape = [2]>({t})", [0, 0, 1], [0, 0, 1],
               s=integers([1, 1, 3]))
    slopes.add("{t} = Reshape({x}, {s}) {y} = GlobalLpPool({t})", [0, 0], [0, 0],
               s=integers([1, 1, 2]))
    slopes.add("{y} = LpNormalization({x})", [0, 0], [0, 0])
    slopes.add("{t} = Add({x}, {n}) {t}c = Greater({x}, {o}) {y} = Where({t}c, {t}, {x})", [1, 1],
               [0, 4], n=floats([NAN, 2]), o=floats([1, 1]))
    slopes.add("{y} = ReduceProd({x})", [6, 0, 0], [0, 2, 3])
    slopes.add("{y} = ReduceProd({x})", [0, 0, 0], [0, 0, 3])
    slopes.add('{y} = ScatterElements <reduction = "mul">({x}, {i}, {z})', [6], [0], z=[2, 3],
               dz=[0, 0], i=integers([0, 0]))
    slopes.add("{t} = QuantizeLinear({x}, {s}) {y} = DequantizeLinear({t}, {s})", [0, 0], [1, 2],
               s=floats(0.5))
    slopes.check(bench)


run_tests(globals(), sys.argv[1:])
