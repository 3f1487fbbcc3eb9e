"""Models with the records that PyTorch's exporter leaves in files."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
from harness import build, floats  # noqa: E402


def folded(model, **parameters):
    """Records which parameter each of these initializers was folded from."""
    for name, parameter in parameters.items():
        model.graph.value_info.add(name=name).metadata_props.add(
            key="pkg.onnxscript.optimizer.folded_from", value=f"['{parameter}']")
    return model


def with_signature(model, *parameters):
    model.graph.metadata_props.add(
        key="pkg.torch.export.ExportedProgram.graph_signature",
        value="".join(f"p_{name}: PARAMETER target='{name}'\n" for name in parameters))
    return model


def recorded_calls():
    """Two norms whose scales PyTorch's exporter has merged, with its record of both."""
    model = build("h = LayerNormalization(x, s1, b1) y = LayerNormalization(h, s1, b1) "
                  "L = ReduceSum <keepdims = 0>(y)", {"s1": floats([1, 1]), "b1": floats([0, 0])},
                  inputs="float[3, 2] x")
    with_signature(model, "s1", "b1", "s2", "b2")
    for node, arguments in zip(model.graph.node, ("%x, [2], %p_s1, %p_b1, 1e-05",
                                                  "%h, [2], %p_s2, %p_b2, 1e-05")):
        node.metadata_props.add(
            key="pkg.torch.onnx.fx_node",
            value="%v : [num_users=1] = call_function[target=torch.ops.aten.layer_norm.default]"
                  f"(args = ({arguments}), kwargs = {{}})")
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'norm', 'call']")
    return model


def tied_copies():
    """A parameter with copies that PyTorch's exporter has transposed, reshaped or just made."""
    model = build("h = MatMul(x, w) y = MatMul(h, t) r = Mul(y, u) a = MatMul(r, e) "
                  "L = ReduceSum <keepdims = 0>(a)", {
                      "w": floats([[1, 2, 3], [4, 5, 6]]), "t": floats([[1, 4], [2, 5], [3, 6]]),
                      "v": floats([1, 2]), "u": floats([[1, 2]]),
                      "e": floats([[1, 2, 3], [4, 5, 6]])}, inputs="float[3, 2] x")
    return folded(with_signature(model, "w", "v"), t="w", u="v", e="w")


def dropped_bias():
    """Calls with biases, scales and a padding row, some of which the exporter has left out."""
    model = build("h = Gather(table, i) n = LayerNormalization(h, s) y = MatMul(n, w) "
                  "L = ReduceSum <keepdims = 0>(y)", {
                      "table": floats(np.ones((4, 2))), "s": floats([1, 1]),
                      "w": floats([[1, 2], [3, 4]])}, inputs="int64[3] i")
    with_signature(model, "table", "s", "b", "w", "c")
    calls = ("embedding.default](args = (%p_table, %i, 0)",
             "layer_norm.default](args = (%h, [2], %p_s, %p_b, 1e-05)",
             "linear.default](args = (%n, %p_w, %p_c)")
    for node, call in zip(model.graph.node, calls):
        node.metadata_props.add(
            key="pkg.torch.onnx.fx_node",
            value=f"%v : [num_users=1] = call_function[target=torch.ops.aten.{call}, kwargs = {{}})")
    return model
