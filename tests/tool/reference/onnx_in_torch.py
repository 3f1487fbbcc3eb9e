"""Runs an ONNX training graph with PyTorch's operators, so that autograd differentiates it.

An oracle for exported models: it shares nothing with sgtc but the file. It covers the operators
that PyTorch's exporters write for the models of ../shared/data; others are refused by name.
"""

import math
import re

import numpy as np
import onnx
import torch
from onnx import numpy_helper

functional = torch.nn.functional

# What PyTorch's autocast computes in float32 on GPUs; on CPUs it leaves some of them in bfloat16.
WIDE_UNDER_AUTOCAST = {
    "BatchNormalization", "Exp", "GroupNormalization", "InstanceNormalization",
    "LayerNormalization", "Pow", "Reciprocal", "ReduceLogSumExp", "ReduceSum", "Softmax",
    "SoftmaxCrossEntropyLoss", "Softplus",
}

DTYPES = {1: torch.float64, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64}


def tensor_of(proto):
    tensor = torch.from_numpy(np.array(numpy_helper.to_array(proto)))
    return tensor.double() if tensor.is_floating_point() else tensor


def at_least_float32(tensor):
    return tensor.float() if tensor is not None and tensor.dtype == torch.bfloat16 else tensor


def sizes(tensor):
    return [int(i) for i in tensor.reshape(-1).tolist()]


def reshape(x, shape, a):
    wanted = sizes(shape)
    if not a.get("allowzero", 0):
        wanted = [x.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    return x.reshape(wanted)


def expand(x, shape, a):
    return x.expand(torch.broadcast_shapes(x.shape, sizes(shape)))


def slice_(x, starts, ends, axes=None, steps=None, a=None):
    axes = sizes(axes) if axes is not None else range(len(sizes(starts)))
    steps = sizes(steps) if steps is not None else [1] * len(sizes(starts))
    for start, end, axis, step in zip(sizes(starts), sizes(ends), axes, steps):
        indices = range(x.shape[axis])[start:end:step]
        x = x.index_select(axis, torch.tensor(list(indices), dtype=torch.int64))
    return x


def gather(x, indices, a):
    axis = a.get("axis", 0) % x.dim()
    flat = torch.where(indices < 0, indices + x.shape[axis], indices).reshape(-1)
    shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]]
    return x.index_select(axis, flat).reshape(shape)


def gather_nd(x, indices, a):
    assert a.get("batch_dims", 0) == 0
    return x[tuple(indices.unbind(-1))]


def unsqueeze(x, axes, a):
    rank = x.dim() + axes.numel()
    for axis in sorted(i % rank for i in sizes(axes)):
        x = x.unsqueeze(axis)
    return x


def squeeze(x, axes=None, a=None):
    chosen = sizes(axes) if axes is not None else [i for i, s in enumerate(x.shape) if s == 1]
    for axis in sorted((i % x.dim() for i in chosen), reverse=True):
        x = x.squeeze(axis)
    return x


def split(x, lengths=None, a=None):
    axis = a.get("axis", 0)
    if lengths is not None:
        return x.split(sizes(lengths), axis)
    return x.chunk(a["num_outputs"], axis)


def reduce(function):
    def run(x, axes=None, a=None):
        chosen = a.get("axes") or (sizes(axes) if axes is not None else list(range(x.dim())))
        return function(x, chosen, bool(a.get("keepdims", 1)))
    return run


def gemm(x, y, z=None, a=None):
    x = x.T if a.get("transA", 0) else x
    y = y.T if a.get("transB", 0) else y
    product = a.get("alpha", 1.0) * (x @ y)
    return product if z is None else product + a.get("beta", 1.0) * z


def layer_normalization(x, scale, bias=None, a=None):
    axis = a.get("axis", -1) % x.dim()
    y = functional.layer_norm(x, x.shape[axis:], None, None, a.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def rms_normalization(x, scale, a):
    axes = list(range(a.get("axis", -1) % x.dim(), x.dim()))
    return x * (x.square().mean(axes, True) + a.get("epsilon", 1e-5)).rsqrt() * scale


def batch_normalization(x, scale, bias, mean, variance, a):
    """In training mode also returns the next statistics, with the population variance."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    if not a.get("training_mode", 0):
        y = (x - mean.view(shape)) * (variance.view(shape) + a.get("epsilon", 1e-5)).rsqrt()
        return y * scale.view(shape) + bias.view(shape)
    axes = [0, *range(2, x.dim())]
    y = functional.batch_norm(x, None, None, scale, bias, True, 0.0, a.get("epsilon", 1e-5))
    keep = a.get("momentum", 0.9)
    with torch.no_grad():
        return (y, keep * mean + (1 - keep) * x.mean(axes),
                keep * variance + (1 - keep) * x.var(axes, unbiased=False))


def group_normalization(x, scale, bias, a):
    groups = a["num_groups"]
    if scale.numel() == groups and groups != x.shape[1]:  # opset 18: a scale per group
        scale, bias = (t.repeat_interleave(x.shape[1] // groups) for t in (scale, bias))
    return functional.group_norm(x, groups, scale, bias, a.get("epsilon", 1e-5))


def window_pads(a, rank):
    pads = a.get("pads", [0] * (2 * rank))
    assert pads[:rank] == pads[rank:], "pads must be symmetric"
    return pads[:rank]


def conv(x, w, bias=None, a=None):
    rank = x.dim() - 2
    function = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    return function(x, w, bias, a.get("strides", [1] * rank), window_pads(a, rank),
                    a.get("dilations", [1] * rank), a.get("group", 1))


def conv_transpose(x, w, bias=None, a=None):
    return functional.conv_transpose2d(x, w, bias, a.get("strides", [1, 1]), window_pads(a, 2),
                                       a.get("output_padding", [0, 0]), a.get("group", 1),
                                       a.get("dilations", [1, 1]))


def max_pool(x, a):
    return functional.max_pool2d(x, a["kernel_shape"], a.get("strides", [1, 1]), window_pads(a, 2),
                                 a.get("dilations", [1, 1]), bool(a.get("ceil_mode", 0)))


def resize(x, roi=None, scales=None, lengths=None, a=None):
    modes = {("nearest", "asymmetric"): "nearest", ("linear", "half_pixel"): "bilinear",
             ("linear", "pytorch_half_pixel"): "bilinear"}
    key = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    if key not in modes:
        raise NotImplementedError(f"Resize with {key}")
    size = sizes(lengths)[2:] if lengths is not None else [
        int(s * f) for s, f in zip(x.shape[2:], scales.tolist()[2:])]
    return functional.interpolate(x, size=size, mode=modes[key])


def dropout(x, ratio=None, training=None, a=None):
    rate = 0.5 if ratio is None else float(ratio)
    if training is None or not bool(training) or rate == 0:
        return x
    raise NotImplementedError("Dropout with a rate above zero is random")


def attention(q, k, v, mask=None, a=None):
    heads = a.get("q_num_heads"), a.get("kv_num_heads")
    flat = q.dim() == 3
    if flat:
        q, k, v = (x.unflatten(-1, (h, -1)).transpose(1, 2)
                   for x, h in ((q, heads[0]), (k, heads[1]), (v, heads[1])))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * a.get("scale", 1 / math.sqrt(q.shape[-1]))
    if a.get("is_causal", 0):
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    y = at_least_float32(scores).softmax(-1) @ v
    return y.transpose(1, 2).flatten(2) if flat else y


def cross_entropy(scores, labels, weights=None, a=None):
    return functional.cross_entropy(scores, labels.long(), weights,
                                    ignore_index=a.get("ignore_index", -100),
                                    reduction=a.get("reduction", "mean"))


def gelu(x, a):
    return functional.gelu(x, approximate=a.get("approximate", "none"))


def constant(a):
    if "value" in a:
        return tensor_of(a["value"])
    if "value_float" in a:
        return torch.tensor(a["value_float"], dtype=torch.float64)
    return torch.tensor(a.get("value_int", a.get("value_ints")), dtype=torch.int64)


def constant_of_shape(shape, a):
    value = tensor_of(a["value"])[0] if "value" in a else torch.tensor(0.0, dtype=torch.float64)
    return value.expand(sizes(shape))


def divide(x, y, a):
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def plain(function):
    """An operator without attributes."""
    return lambda *inputs, a: function(*inputs)


OPERATORS = {
    "Abs": plain(torch.abs), "Add": plain(torch.add), "And": plain(torch.logical_and),
    "Cos": plain(torch.cos), "Equal": plain(torch.eq), "Erf": plain(torch.erf),
    "Exp": plain(torch.exp), "Greater": plain(torch.gt), "GreaterOrEqual": plain(torch.ge),
    "Identity": plain(lambda x: x), "IsNaN": plain(torch.isnan), "Log": plain(torch.log),
    "MatMul": plain(torch.matmul), "Mul": plain(torch.mul), "Neg": plain(torch.neg),
    "Reciprocal": plain(torch.reciprocal), "Relu": plain(torch.relu),
    "Shape": plain(lambda x: torch.tensor(x.shape, dtype=torch.int64)),
    "Sigmoid": plain(torch.sigmoid), "Sin": plain(torch.sin),
    "Softplus": plain(functional.softplus), "Sqrt": plain(torch.sqrt), "Sub": plain(torch.sub),
    "Tanh": plain(torch.tanh), "Where": plain(torch.where),
    "GlobalAveragePool": plain(lambda x: x.mean(list(range(2, x.dim())), True)),
    "GatherElements": lambda x, indices, a: x.gather(a.get("axis", 0), indices),
    "Pow": plain(lambda x, y: x.pow(y.to(x.dtype))),
    "Cast": lambda x, a: x.to(DTYPES[a["to"]]),
    "Concat": lambda *inputs, a: torch.cat(inputs, a["axis"]),
    "Flatten": lambda x, a: x.reshape(math.prod(x.shape[:a.get("axis", 1)]), -1),
    "LeakyRelu": lambda x, a: functional.leaky_relu(x, a.get("alpha", 0.01)),
    "Softmax": lambda x, a: x.softmax(a.get("axis", -1)),
    "Transpose": lambda x, a: x.permute(a.get("perm", list(range(x.dim()))[::-1])),
    "InstanceNormalization": lambda x, scale, bias, a: functional.instance_norm(
        x, None, None, scale, bias, True, 0.0, a.get("epsilon", 1e-5)),
    "ReduceLogSumExp": reduce(torch.logsumexp), "ReduceMean": reduce(torch.mean),
    "ReduceSum": reduce(torch.sum),
    "Attention": attention, "BatchNormalization": batch_normalization, "Constant": constant,
    "ConstantOfShape": constant_of_shape, "Conv": conv, "ConvTranspose": conv_transpose,
    "Div": divide, "Dropout": dropout, "Expand": expand, "Gather": gather, "GatherND": gather_nd,
    "Gelu": gelu, "Gemm": gemm, "GroupNormalization": group_normalization,
    "LayerNormalization": layer_normalization, "MaxPool": max_pool,
    "RMSNormalization": rms_normalization, "Reshape": reshape, "Resize": resize, "Slice": slice_,
    "SoftmaxCrossEntropyLoss": cross_entropy, "Split": split, "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
}


def attributes_of(node):
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else
            list(value) if isinstance(value, (list, tuple)) else value
            for name, value in values.items()}


class TorchGraph:
    """`weights` are the float initializers by name; `trained` names what PyTorch trained.

    All float32 numbers become float64: the oracle is exact where the model is not chaotic. With
    torch.float32 as `dtype` they stay, and torch.autocast makes products bfloat16 as on GPUs.
    """

    def __init__(self, path, dtype=torch.float64):
        self.dtype = dtype
        self.graph = onnx.load(path).graph
        unknown = {n.op_type for n in self.graph.node} - set(OPERATORS)
        if unknown:
            raise NotImplementedError(f"{path}: no rule for {', '.join(sorted(unknown))}")
        initializers = {t.name: self._typed(tensor_of(t)) for t in self.graph.initializer}
        self.weights = {n: t for n, t in initializers.items() if t.is_floating_point()}
        self.constants = {n: t for n, t in initializers.items() if n not in self.weights}
        self.statistics = {}  # name of a statistic -> name of its next value
        for node in self.graph.node:
            if node.op_type == "BatchNormalization" and len(node.output) == 3:
                self.statistics.update(zip(node.input[3:5], node.output[1:3]))
        parameters = self._parameters()
        self.trained = [n for n in self.weights if n in parameters and n not in self.statistics]
        for name in self.trained:
            self.weights[name].requires_grad_(True)

    def _typed(self, tensor):
        return tensor.to(self.dtype) if tensor.dtype == torch.float64 else tensor

    def _feed(self, tensor):
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _parameters(self):
        """Weights that were parameters of the module: all, unless the exporter recorded which."""
        signature = {p.key: p.value for p in self.graph.metadata_props}.get(
            "pkg.torch.export.ExportedProgram.graph_signature")
        if signature is None:
            return set(self.weights)
        recorded = set(re.findall(r"PARAMETER target='([^']+)'", signature))
        folded = {v.name for v in self.graph.value_info for p in v.metadata_props
                  if p.key == "pkg.onnxscript.optimizer.folded_from"
                  and recorded & set(re.findall(r"'([^']+)'", p.value))}
        return {n for n in self.weights if n in recorded or n in folded or
                any(n.startswith(r + "_") for r in recorded)}

    def loss(self, feeds):
        """The graph's first output; the statistics of batch norm move on."""
        values = {**self.constants, **self.weights,
                  **{name: self._feed(tensor) for name, tensor in feeds.items()}}
        for node in self.graph.node:
            inputs = [values[name] if name else None for name in node.input]
            attributes = attributes_of(node)
            if node.op_type in WIDE_UNDER_AUTOCAST:
                inputs = [at_least_float32(x) for x in inputs]
            if node.op_type == "Split" and len(inputs) < 2:
                attributes.setdefault("num_outputs", len(node.output))
            results = OPERATORS[node.op_type](*inputs, a=attributes)
            results = results if isinstance(results, (tuple, list)) else [results]
            values.update((name, self._typed(r)) for name, r in zip(node.output, results) if name)
        for name, following in self.statistics.items():
            self.weights[name] = values[following]
        return values[self.graph.output[0].name].reshape(())
