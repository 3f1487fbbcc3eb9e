"""Writes random models of one operator as node tests: write_random_data.py FOLDER COUNT SEED.

Each operator has a function below that draws shapes, axes, attributes and an operator set; what
ONNX's reference evaluator computes is the expected output. Cases that the evaluator cannot run are
left out. The format is that of write_node_data.py.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Draw:
    """Random choices of one case, and the node that they lead to."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.inputs = {}

    def integer(self, low, high):
        return int(self.random.integers(low, high, endpoint=True))

    def choice(self, values):
        return values[self.integer(0, len(values) - 1)]

    def flag(self):
        return self.integer(0, 1)

    def shape(self, least, most):
        sizes = [1, 1, 2, 3, 4, 5] if self.integer(0, 19) else [0, 1, 2]
        return [self.choice(sizes) for _ in range(self.integer(least, most))]

    def filled_shape(self, least, most):
        return [self.integer(1, 5) for _ in range(self.integer(least, most))]

    def broadcastable(self, shape):
        kept = [size if self.integer(0, 3) else 1 for size in shape]
        return kept[self.integer(0, len(kept)):]

    def floats(self, name, shape, low=-2.0, high=2.0):
        self.inputs[name] = self.random.uniform(low, high, shape).astype(np.float32)
        return name

    def integers(self, name, shape, low, high):
        self.inputs[name] = self.random.integers(low, high, shape, np.int64, endpoint=True)
        return name

    def constant(self, name, values):
        self.inputs[name] = np.asarray(values)
        return name

    def axis(self, shape):
        return self.integer(-len(shape), len(shape) - 1)


def binary(op):
    def draw(d):
        shape = d.shape(0, 4)
        x = d.floats("x", shape)
        low = 0.5 if op in ("Div", "Pow") else -2.0
        y = d.floats("y", d.broadcastable(shape), low)
        if op == "Pow":
            d.floats("x", shape, 0.5)
        return helper.make_node(op, [x, y] if op in ("Div", "Pow") or d.flag() else [y, x], ["z"])
    return draw, (13, 14, 21)


def unary(op, low=-2.0, high=2.0, opsets=(13, 22), **attributes):
    def draw(d):
        given = {name: d.choice(values) for name, values in attributes.items()}
        return helper.make_node(op, [d.floats("x", d.shape(0, 4), low, high)], ["z"], **given)
    return draw, opsets


def variadic(op):
    def draw(d):
        shape = d.shape(1, 3)
        names = [d.floats(f"x{k}", d.broadcastable(shape)) for k in range(d.integer(1, 3))]
        return helper.make_node(op, names, ["z"])
    return draw, (13, 21)


def reduction(op, low=-2.0):
    def draw(d):
        shape = d.filled_shape(1, 4)
        axes = sorted({d.integer(0, len(shape) - 1) for _ in range(d.integer(1, 2))})
        axes = [axis - len(shape) if d.flag() else axis for axis in axes]
        names = [d.floats("x", shape, low)]
        if d.flag():
            names.append(d.constant("axes", np.array(axes, np.int64)))
        return helper.make_node(op, names, ["z"], keepdims=d.flag())
    return draw, (18, 20, 21)


def old_reduction(op, low=-2.0):
    def draw(d):
        shape = d.filled_shape(1, 4)
        return helper.make_node(op, [d.floats("x", shape, low)], ["z"], axes=[d.axis(shape)],
                                keepdims=d.flag())
    return draw, (11, 12)


def softmax(op):
    def draw(d):
        shape = d.filled_shape(1, 4)
        return helper.make_node(op, [d.floats("x", shape)], ["z"], axis=d.axis(shape))
    return draw, (13, 21)


def gather(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape)
    size = shape[axis]
    return helper.make_node("Gather", [d.floats("x", shape),
                                       d.integers("i", d.shape(0, 2), -size, size - 1)],
                            ["z"], axis=axis)


def gather_elements(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape) % len(shape)  # as the evaluator needs it
    size, taken = shape[axis], list(shape)
    taken[axis] = d.integer(1, 4)
    return helper.make_node("GatherElements", [d.floats("x", shape),
                                               d.integers("i", taken, -size, size - 1)],
                            ["z"], axis=axis)


def scatter_elements(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape) % len(shape)  # as the evaluator needs it
    reduction_kind = d.choice(["none", "add", "mul", "max", "min"])
    size, taken = shape[axis], list(shape)
    taken[axis] = 1 if reduction_kind == "none" else d.integer(1, 3)
    return helper.make_node("ScatterElements",
                            [d.floats("x", shape), d.integers("i", taken, -size, size - 1),
                             d.floats("u", taken)], ["z"], axis=axis, reduction=reduction_kind)


def reshape(d):
    shape = d.filled_shape(1, 4)
    target = list(shape)
    d.random.shuffle(target)
    if d.flag():
        target[d.integer(0, len(target) - 1)] = -1
    if shape[0] == target[0] and d.flag():
        target[0] = 0
    return helper.make_node("Reshape", [d.floats("x", shape),
                                        d.constant("s", np.array(target, np.int64))], ["z"])


def transpose(d):
    shape = d.shape(1, 4)
    return helper.make_node("Transpose", [d.floats("x", shape)], ["z"],
                            perm=[int(k) for k in d.random.permutation(len(shape))])


def slices(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape)
    # A start before the first element is clamped to it by ONNX, and not by the evaluator.
    bounds = [d.integer(-shape[axis], 7), d.integer(-7, 7)]
    step = d.choice([-2, -1, 1, 2])
    names = [d.floats("x", shape)]
    for name, value in (("s", bounds[0]), ("e", bounds[1]), ("a", axis), ("t", step)):
        names.append(d.constant(name, np.array([value], np.int64)))
    return helper.make_node("Slice", names, ["z"])


def pad(d):
    shape = [d.integer(3, 5) for _ in range(d.integer(1, 3))]
    mode = d.choice(["constant", "reflect", "edge", "wrap"])
    pads = [d.integer(0, 2) for _ in range(2 * len(shape))]
    names = [d.floats("x", shape), d.constant("p", np.array(pads, np.int64))]
    if mode == "constant" and d.flag():
        names.append(d.floats("v", []))
    return helper.make_node("Pad", names, ["z"], mode=mode)


def concat(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape)
    names = []
    for k in range(d.integer(1, 3)):
        part = list(shape)
        part[axis] = d.integer(0, 3)
        names.append(d.floats(f"x{k}", part))
    return helper.make_node("Concat", names, ["z"], axis=axis)


def clip(d):
    names = [d.floats("x", d.shape(0, 3))]
    names.append(d.floats("low", [], -1, 0) if d.flag() else "")
    if d.flag():
        names.append(d.floats("high", [], -0.5, 1))
    return helper.make_node("Clip", names, ["z"])


def where(d):
    shape = d.shape(0, 3)
    d.inputs["c"] = d.random.integers(0, 2, d.broadcastable(shape)) > 0
    return helper.make_node("Where", ["c", d.floats("x", shape),
                                      d.floats("y", d.broadcastable(shape))], ["z"])


def expand(d):
    shape = d.filled_shape(1, 3)
    return helper.make_node("Expand", [d.floats("x", d.broadcastable(shape) or [1]),
                                       d.constant("s", np.array(shape, np.int64))], ["z"])


def tile(d):
    shape = d.filled_shape(1, 3)
    repeats = np.array([d.integer(0, 3) for _ in shape], np.int64)
    return helper.make_node("Tile", [d.floats("x", shape), d.constant("r", repeats)], ["z"])


def matmul(d):
    rows, inner, columns = (d.integer(1, 5) for _ in range(3))
    batch = d.filled_shape(0, 2)
    a, b = [*d.broadcastable(batch), rows, inner], [*batch, inner, columns]
    if d.integer(0, 4) == 0:
        a = [inner]
    return helper.make_node("MatMul", [d.floats("x", a), d.floats("y", b)], ["z"])


def gemm(d):
    m, k, n = (d.integer(1, 5) for _ in range(3))
    turn_a, turn_b = d.flag(), d.flag()
    names = [d.floats("x", [k, m] if turn_a else [m, k]), d.floats("y", [n, k] if turn_b else [k, n])]
    if d.flag():
        names.append(d.floats("c", d.broadcastable([m, n])))
    return helper.make_node("Gemm", names, ["z"], transA=turn_a, transB=turn_b,
                            alpha=d.choice([1.0, 0.5]), beta=d.choice([1.0, -2.0]))


def einsum(d):
    sizes = {letter: d.integer(1, 4) for letter in "bijkl"}
    equation = d.choice(["bij,bjk->bik", "ij,jk", "ii->i", "ij,kj->ik", "bij->b", "ij,kl->il",
                         "i,i", "bij,bkj,k->bi", "ij->ji", "b...,b...->..."])
    names = []
    for k, term in enumerate(equation.split("->")[0].split(",")):
        shape = [sizes[letter] for letter in term.replace("...", "jk")]
        names.append(d.floats(f"x{k}", shape))
    return helper.make_node("Einsum", names, ["z"], equation=equation)


def convolution(d):
    groups, dims = d.integer(1, 2), d.integer(1, 2)
    kernel = [d.integer(1, 3) for _ in range(dims)]
    dilations = [d.integer(1, 2) for _ in range(dims)]
    x = [d.integer(1, 2), 2 * groups, *(d.integer(5, 7) for _ in range(dims))]
    names = [d.floats("x", x), d.floats("w", [2 * groups, 2, *kernel])]
    if d.flag():
        names.append(d.floats("b", [2 * groups]))
    return helper.make_node("Conv", names, ["z"], group=groups, dilations=dilations,
                            strides=[d.integer(1, 2) for _ in range(dims)],
                            pads=[d.integer(0, 2) for _ in range(2 * dims)])


def convolution_transpose(d):
    groups = d.integer(1, 2)
    x = [d.integer(1, 2), 2 * groups, d.integer(1, 4), d.integer(1, 4)]
    strides = [d.integer(1, 3), d.integer(1, 3)]
    names = [d.floats("x", x), d.floats("w", [2 * groups, d.integer(1, 2), 3, 2])]
    return helper.make_node("ConvTranspose", names, ["z"], group=groups, strides=strides,
                            output_padding=[d.integer(0, s - 1) for s in strides],
                            pads=[d.flag(), 0, d.flag(), 0])


def pool(op):
    def draw(d):
        dims = d.integer(1, 2)
        x = [d.integer(1, 2), d.integer(1, 2), *(d.integer(4, 7) for _ in range(dims))]
        attributes = {"kernel_shape": [d.integer(2, 3) for _ in range(dims)],
                      "strides": [d.integer(1, 3) for _ in range(dims)],
                      "pads": 2 * [d.flag() for _ in range(dims)], "ceil_mode": 0}
        if op == "AveragePool":
            attributes["count_include_pad"] = d.flag()
        return helper.make_node(op, [d.floats("x", x)], ["z"], **attributes)
    return draw, (12, 19, 22)


def layer_normalization(d):
    shape = d.filled_shape(1, 4)
    axis = d.axis(shape)
    block = shape[axis:]
    names = [d.floats("x", shape), d.floats("scale", d.broadcastable(block) or [1])]
    if d.flag():
        names.append(d.floats("bias", block))
    return helper.make_node("LayerNormalization", names, ["z"], axis=axis, epsilon=1e-2)


def group_normalization(d):
    groups, per_group = d.integer(1, 3), d.integer(1, 3)
    channels = groups * per_group
    x = [d.integer(1, 2), channels, *d.filled_shape(1, 2)]
    return helper.make_node("GroupNormalization",
                            [d.floats("x", x), d.floats("s", [channels]), d.floats("b", [channels])],
                            ["z"], num_groups=groups, epsilon=1e-2)


def instance_normalization(d):
    channels = d.integer(1, 3)
    x = [d.integer(1, 2), channels, *d.filled_shape(1, 2)]
    return helper.make_node("InstanceNormalization",
                            [d.floats("x", x), d.floats("s", [channels]), d.floats("b", [channels])],
                            ["z"], epsilon=1e-2)


def roi_align(d):
    x = [d.integer(1, 2), d.integer(1, 2), d.integer(3, 6), d.integer(3, 6)]
    regions = d.integer(1, 3)
    d.floats("r", [regions, 2, 2], -2.0, 8.0)
    d.inputs["r"].sort(axis=1)
    d.inputs["r"] = d.inputs["r"].reshape(regions, 4)
    return helper.make_node(
        "RoiAlign", [d.floats("x", x), "r", d.integers("b", [regions], 0, x[0] - 1)], ["z"],
        mode=d.choice(["avg", "max"]), sampling_ratio=d.integer(1, 3),
        output_height=d.integer(1, 3), output_width=d.integer(1, 3),
        coordinate_transformation_mode=d.choice(["half_pixel", "output_half_pixel"]))


class MaxRoiPool(OpRun):
    """The operator as Caffe defined it, which the evaluator lacks."""

    op_domain = ""

    def _run(self, x, regions, pooled_shape=None, spatial_scale=1.0):
        rows, columns = pooled_shape
        result = np.zeros([len(regions), x.shape[1], rows, columns], x.dtype)
        for r, region in enumerate(regions):
            left, top, right, bottom = (self.place(v, spatial_scale) for v in region[1:])
            for i in range(rows):
                for j in range(columns):
                    low, high = self.bounds(i, rows, top, bottom, x.shape[2])
                    first, last = self.bounds(j, columns, left, right, x.shape[3])
                    cells = x[int(region[0]), :, low:high, first:last]
                    if cells.size:
                        result[r, :, i, j] = cells.max(axis=(1, 2))
        return (result,)

    @staticmethod
    def place(value, scale):
        scaled = value * np.float32(scale)
        return int(np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5)))

    @staticmethod
    def bounds(index, bins, start, end, size):
        width = np.float32(max(end - start + 1, 1)) / np.float32(bins)
        low = int(np.floor(np.float32(index) * width)) + start
        high = int(np.ceil(np.float32(index + 1) * width)) + start
        return min(max(low, 0), size), min(max(high, 0), size)


class GlobalLpPool(OpRun):
    """The evaluator lacks it too."""

    op_domain = ""

    def _run(self, x, p=2):
        axes = tuple(range(2, x.ndim))
        return ((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)).astype(x.dtype),


def global_lp_pool(d):
    x = [d.integer(1, 2), d.integer(1, 3), d.integer(1, 4), d.integer(1, 4)]
    return helper.make_node("GlobalLpPool", [d.floats("x", x, 0.1, 2.0)], ["z"], p=d.integer(1, 3))


def max_roi_pool(d):
    x = [d.integer(1, 2), d.integer(1, 2), d.integer(1, 6), d.integer(1, 6)]
    regions = d.integer(0, 3)
    d.floats("r", [regions, 5], -4.0, 16.0)
    d.inputs["r"][:, 0] = d.random.integers(0, x[0], regions)
    return helper.make_node("MaxRoiPool", [d.floats("x", x), "r"], ["z"],
                            pooled_shape=[d.integer(1, 3), d.integer(1, 3)],
                            spatial_scale=d.choice([1.0, 0.5]))


def unique(d):
    shape = d.shape(1, 3)
    d.inputs["x"] = d.random.integers(0, 2, shape).astype(d.choice([np.float32, np.int64]))
    axis = {"axis": d.axis(shape)} if d.flag() else {}
    return helper.make_node("Unique", ["x"], ["z", "i", "n", "c"], sorted=d.flag(), **axis)


def non_max_suppression(d):
    batches, classes, boxes = d.integer(1, 2), d.integer(1, 2), d.integer(1, 6)
    names = [d.floats("b", [batches, boxes, 4], 0.0, 1.0),
             d.floats("s", [batches, classes, boxes], 0.0, 1.0),
             d.constant("m", np.array([d.integer(1, 4)], np.int64)),
             d.floats("o", [1], 0.1, 0.6)]
    if d.flag():
        names.append(d.floats("l", [1], 0.0, 0.5))
    return helper.make_node("NonMaxSuppression", names, ["z"], center_point_box=d.flag())


def cumulative_sum(d):
    shape = d.filled_shape(1, 3)
    return helper.make_node("CumSum", [d.floats("x", shape),
                                       d.constant("a", np.array(d.axis(shape), np.int64))], ["z"],
                            exclusive=d.flag(), reverse=d.flag())


def top_k(d):
    shape = d.filled_shape(1, 3)
    axis = d.axis(shape)
    return helper.make_node("TopK", [d.floats("x", shape),
                                     d.constant("k", np.array([d.integer(1, shape[axis])], np.int64))],
                            ["z", "i"], axis=axis, largest=d.flag())


def trilu(d):
    return helper.make_node("Trilu", [d.floats("x", d.filled_shape(2, 3)),
                                      d.constant("k", np.array(d.integer(-3, 3), np.int64))], ["z"],
                            upper=d.flag())


def depth_to_space(d):
    block = d.integer(1, 3)
    x = [d.integer(1, 2), block * block * d.integer(1, 2), d.integer(1, 3), d.integer(1, 3)]
    return helper.make_node("DepthToSpace", [d.floats("x", x)], ["z"], blocksize=block,
                            mode=d.choice(["DCR", "CRD"]))


def space_to_depth(d):
    block = d.integer(1, 3)
    x = [d.integer(1, 2), d.integer(1, 2), block * d.integer(1, 3), block * d.integer(1, 3)]
    return helper.make_node("SpaceToDepth", [d.floats("x", x)], ["z"], blocksize=block)


def reverse_sequence(d):
    shape = d.filled_shape(2, 4)
    time = d.flag()
    lengths = d.integers("n", [shape[1 - time]], 1, shape[time])
    return helper.make_node("ReverseSequence", [d.floats("x", shape), lengths], ["z"],
                            time_axis=time, batch_axis=1 - time)


def dequantize(d):
    shape = d.filled_shape(2, 3)
    d.inputs["x"] = d.random.integers(0, 255, shape).astype(np.uint8)
    parameters = [shape[1]] if d.flag() else []
    names = ["x", d.floats("s", parameters, 0.1, 1.0)]
    if d.flag():
        d.inputs["zero"] = d.random.integers(0, 255, parameters).astype(np.uint8)
        names.append("zero")
    return helper.make_node("DequantizeLinear", names, ["z"], axis=1)


def cross_entropy(op):
    def draw(d):
        classes = d.integer(1, 5)
        shape = [d.integer(1, 4), classes, *d.filled_shape(0, 1)]
        labels = [size for k, size in enumerate(shape) if k != 1]
        names = [d.floats("x", shape), d.integers("labels", labels, 0, classes - 1)]
        attributes = {"reduction": d.choice(["mean", "sum", "none"])}
        if d.flag():
            names.append(d.floats("w", [classes], 0.5))
        if d.flag() and classes > 1:
            attributes["ignore_index"] = d.choice([-100, 0])
            d.inputs["labels"].flat[0] = attributes["ignore_index"]
            d.inputs["labels"].flat[-1:] = classes - 1
        return helper.make_node(op, names, ["z"], **attributes)
    return draw, (13, 22)


def cast(d):
    x = d.floats("x", d.shape(0, 3), -300, 300)
    return helper.make_node("Cast", [x], ["z"], to=d.choice([
        onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64,
        onnx.TensorProto.INT32, onnx.TensorProto.BOOL]))


DRAWS = {
    **{op: binary(op) for op in ("Add", "Sub", "Mul", "Div", "Pow")},
    **{op: unary(op) for op in ("Neg", "Abs", "Exp", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh",
                                "Tanh", "Sigmoid", "Relu", "Softplus", "Softsign", "Erf", "Floor",
                                "Ceil", "Round", "Sign", "Selu")},
    **{op: unary(op, 0.3, 3.0) for op in ("Log", "Sqrt", "Reciprocal")},
    **{op: unary(op, -0.9, 0.9) for op in ("Asin", "Acos", "Atanh", "Tan")},
    "Acosh": unary("Acosh", 1.5, 3.0),
    "Elu": unary("Elu", alpha=[1.0, 0.5]), "Celu": unary("Celu", alpha=[1.0, 0.5]),
    "LeakyRelu": unary("LeakyRelu", opsets=(13, 16), alpha=[0.1, 0.3]),
    "HardSigmoid": unary("HardSigmoid", alpha=[0.2, 0.4], beta=[0.5, 0.3]),
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=[0.5, 1.0]),
    "HardSwish": unary("HardSwish", opsets=(14, 22)),
    "Gelu": unary("Gelu", opsets=(20,), approximate=["none", "tanh"]),
    "Mish": unary("Mish", opsets=(18, 22)),
    **{op: variadic(op) for op in ("Sum", "Max", "Min", "Mean")},
    **{op: reduction(op) for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                                    "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")},
    "ReduceLogSum": reduction("ReduceLogSum", 0.5), "ReduceSum": reduction("ReduceSum"),
    "ReduceMax-11": old_reduction("ReduceMax"), "ReduceProd-11": old_reduction("ReduceProd"),
    "Softmax": softmax("Softmax"), "LogSoftmax": softmax("LogSoftmax"),
    "Hardmax": softmax("Hardmax"),
    "Gather": (gather, (11, 13)), "GatherElements": (gather_elements, (11, 13)),
    "ScatterElements": (scatter_elements, (18,)), "Reshape": (reshape, (13, 21)),
    "Transpose": (transpose, (13, 21)), "Slice": (slices, (11, 13)), "Pad": (pad, (19, 21)),
    "Concat": (concat, (11, 13)), "Clip": (clip, (12, 13)), "Where": (where, (9, 16)),
    "Expand": (expand, (8, 13)), "Tile": (tile, (13,)), "MatMul": (matmul, (9, 13)),
    "Gemm": (gemm, (11, 13)), "Einsum": (einsum, (12,)), "Conv": (convolution, (11, 22)),
    "ConvTranspose": (convolution_transpose, (11, 22)), "MaxPool": pool("MaxPool"),
    "AveragePool": pool("AveragePool"), "LayerNormalization": (layer_normalization, (17,)),
    "GroupNormalization": (group_normalization, (21,)),
    "InstanceNormalization": (instance_normalization, (6, 22)),
    "CumSum": (cumulative_sum, (11, 14)), "TopK": (top_k, (11,)), "Trilu": (trilu, (14,)),
    "RoiAlign": (roi_align, (16, 22)), "MaxRoiPool": (max_roi_pool, (11, 22)),
    "GlobalLpPool": (global_lp_pool, (11, 22)),
    "Unique": (unique, (11,)), "NonMaxSuppression": (non_max_suppression, (10, 11)),
    "SoftmaxCrossEntropyLoss": cross_entropy("SoftmaxCrossEntropyLoss"),
    "NegativeLogLikelihoodLoss": cross_entropy("NegativeLogLikelihoodLoss"),
    "Cast": (cast, (13, 19)), "DepthToSpace": (depth_to_space, (11, 13)),
    "SpaceToDepth": (space_to_depth, (13,)), "ReverseSequence": (reverse_sequence, (10,)),
    "DequantizeLinear": (dequantize, (19, 21)),
}


def model_of(draw, opset, seed):
    """A model and its inputs."""
    d = Draw(seed)
    node = draw(d)
    used = [name for name in node.input if name]
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(d.inputs[name].dtype),
                                            d.inputs[name].shape) for name in used]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "random", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model, {name: d.inputs[name] for name in used}


def write_case(folder, name, draw, opset, seed):
    """Whether the evaluator could run the case."""
    model, inputs = model_of(draw, opset, seed)
    try:
        results = ReferenceEvaluator(model, new_ops=[MaxRoiPool, GlobalLpPool]).run(None, inputs)
    except (IndexError, TypeError, ValueError):
        return False
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", list(inputs.values())), ("output", results)):
        for k, value in enumerate(values):
            proto = numpy_helper.from_array(np.asarray(value))
            (data / f"{kind}_{k}.pb").write_bytes(proto.SerializeToString())
    return True


def main():
    folder, count, first = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    names = list(DRAWS)
    np.seterr(all="ignore")
    written = 0
    for k in range(count):
        name = names[k % len(names)]
        draw, opsets = DRAWS[name]
        seed = first * 1_000_003 + k
        opset = opsets[seed % len(opsets)]
        written += write_case(folder, f"random_{name}_{seed}", draw, opset, seed)
    print(f"{written} of {count} cases in {folder}")


if __name__ == "__main__":
    main()
