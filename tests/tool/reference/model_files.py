"""Checks files of sgtc-model with ONNX's own checker, and GPT-2's loss against numpy.

    model_files.py FILE.onnx...      checker and full shape inference of each file
    model_files.py --gpt2 FILE.onnx  the same, and the loss of a batch of four rows, computed from
                                     the weights by the formulas of the paper and by ONNX's
                                     reference evaluator

Sparse initializers without values become dense first: ONNX's shape inference takes no sparse
operand for a dense one.
"""

import argparse

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


def random_weights(model, random):
    """Puts random dense weights in place of the sparse zeros and returns them by name.

    They are larger than initial weights, so that every term of the loss shows.
    """
    weights = {sparse.values.name: random.normal(0, 0.3, list(sparse.dims)).astype(np.float32)
               for sparse in model.graph.sparse_initializer}
    del model.graph.sparse_initializer[:]
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in weights.items())
    return weights


def declare_weights(model):
    """Turns the sparse zeros into inputs of dense type."""
    for sparse in model.graph.sparse_initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(
            sparse.values.name, onnx.TensorProto.FLOAT, list(sparse.dims)))
    del model.graph.sparse_initializer[:]


def check_initialization(model):
    """Each rule binds a weight and has its shape."""
    dims = {sparse.values.name: list(sparse.dims) for sparse in model.graph.sparse_initializer}
    [info] = model.training_info
    whole = onnx.helper.make_model(info.initialization, opset_imports=model.opset_import)
    onnx.checker.check_model(whole, full_check=True)
    shapes = {output.name: [dim.dim_value for dim in output.type.tensor_type.shape.dim]
              for output in info.initialization.output}
    for binding in info.initialization_binding:
        assert shapes[binding.value] == dims[binding.key], binding.key


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model)
    check_initialization(model)
    declare_weights(model)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gpt2_loss(weights, heads, input_ids, labels):
    """The mean cross-entropy of GPT-2 in float64."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}

    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def norm(name, x):
        return layer_norm(x, w[name + ".weight"], w[name + ".bias"])

    batch, seq = input_ids.shape
    x = w["wte.weight"][input_ids] + w["wpe.weight"][:seq]
    width = x.shape[-1]
    hidden = np.triu(np.ones((seq, seq), bool), 1)
    layer = 0
    while f"h.{layer}.ln_1.weight" in w:
        h = f"h.{layer}"
        parts = np.split(linear(h + ".attn.c_attn", norm(h + ".ln_1", x)), 3, -1)
        q, k, v = (p.reshape(batch, seq, heads, -1).swapaxes(1, 2) for p in parts)
        scores = q @ k.swapaxes(2, 3) / np.sqrt(width // heads)
        mixed = softmax(np.where(hidden, -np.inf, scores)) @ v
        x = x + linear(h + ".attn.c_proj", mixed.swapaxes(1, 2).reshape(batch, seq, width))
        x = x + linear(h + ".mlp.c_proj", gelu(linear(h + ".mlp.c_fc", norm(h + ".ln_2", x))))
        layer += 1
    probabilities = softmax(norm("ln_f", x) @ w["wte.weight"].T)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    return -np.log(rows[np.arange(rows.shape[0]), labels.ravel()]).mean()


def compare_gpt2(path):
    random = np.random.default_rng(1)
    model = onnx.load(path)
    weights = random_weights(model, random)
    seq = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    heads = next(list(numpy_helper.to_array(node.attribute[0].t))[2]
                 for node in model.graph.node if node.name.startswith("attn.heads."))
    tokens = random.integers(0, weights["wte.weight"].shape[0], (4, seq + 1))
    feeds = {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]}
    found = ReferenceEvaluator(model).run(["loss"], feeds)[0]
    expected = gpt2_loss(weights, heads, **feeds)
    assert abs(found - expected) < 1e-5 * expected, (found, expected)
    print(f"{path}: loss {found:.6f}, expected {expected:.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--gpt2", action="store_true")
    arguments = parser.parse_args()
    for path in arguments.files:
        check(path)
        if arguments.gpt2:
            compare_gpt2(path)
        print(f"{path}: valid")


if __name__ == "__main__":
    main()
