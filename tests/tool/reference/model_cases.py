"""Small models of sgtc-model with weights and data, trained by a test and by PyTorch alike.

Numbers come from numpy's RandomState, whose streams never change. Needs numpy and onnx.
"""

import json
import os
import pathlib
import subprocess

import numpy as np
import onnx

SGTC_MODEL = os.environ.get("SGTC_MODEL", "sgtc-model")
STEPS = 8
BATCH = 4
OPTIMIZERS = {
    "sgd": {"lr": 0.05},
    "adamw": {"lr": 2e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1},
}

TEXT = {"--layers": 2, "--width": 24, "--heads": 4, "--hidden": 40, "--vocab": 61, "--seq": 12}
IMAGE = {"--size": 32, "--classes": 7}
# name -> (subcommand of sgtc-model, options, optimizer)
CASES = {
    "resnet-basic": ("resnet", {**IMAGE, "--blocks": "1,2", "--width": 6}, "sgd"),
    "resnet-bottleneck": (
        "resnet50", {**IMAGE, "--blocks": "1,1", "--width": 4, "--channels": 1}, "sgd"),
    "llama": ("llama", {**TEXT, "--kv-heads": 2}, "adamw"),
    "llama-untied": ("llama-7b", {**TEXT, "--kv-heads": 4}, "adamw"),
    "bert-tokens": ("bert", {**TEXT, "--context": 20}, "adamw"),
    "bert-rows": ("bert", {**TEXT, "--context": 12, "--classes": 3}, "adamw"),
    "vit": ("vit", {"--layers": 2, "--width": 24, "--heads": 4, "--hidden": 40, "--patch": 8,
                    **IMAGE}, "adamw"),
}


def write_model(case, path, *more):
    """Writes the ONNX file of a case; `more` are further options."""
    command, options, _ = CASES[case]
    words = [str(word) for pair in options.items() for word in pair]
    subprocess.run([SGTC_MODEL, command, *words, "--batch", str(BATCH), "-o", path, *more],
                   check=True)


def shapes_of(path):
    """The weights of a file of sgtc-model: dimensions by name."""
    graph = onnx.load(path).graph
    return {sparse.values.name: list(sparse.dims) for sparse in graph.sparse_initializer}


def make_weight(name, dims, random):
    """Of a size at which every term of the loss shows."""
    if name.endswith("running_mean"):
        return np.zeros(dims, np.float32)
    if name.endswith("running_var"):
        return np.ones(dims, np.float32)
    values = random.normal(size=dims)
    if len(dims) == 1:
        return (0.1 * values + name.endswith("weight")).astype(np.float32)
    scale = 0.3 if "embed" in name or "cls_token" in name else np.prod(dims[1:])**-0.5
    return (scale * values).astype(np.float32)


def make_weights(shapes):
    random = np.random.RandomState(23)
    return {name: make_weight(name, shapes[name], random) for name in sorted(shapes)}


def make_feeds(case):
    """Arrays of the graph's inputs, one batch."""
    random = np.random.RandomState(29)
    command, options, _ = CASES[case]
    if "--classes" in options and not command.startswith("bert"):
        shape = (BATCH, options.get("--channels", 3), options["--size"], options["--size"])
        return {"x": random.normal(size=shape).astype(np.float32),
                "labels": random.randint(options["--classes"], size=BATCH)}
    vocab, shape = options["--vocab"], (BATCH, options["--seq"])
    ids = random.randint(vocab, size=shape)
    if command.startswith("llama"):
        return {"input_ids": ids, "labels": random.randint(vocab, size=shape)}
    lengths = random.randint(shape[1] // 2, shape[1] + 1, size=(BATCH, 1))
    mask = (np.arange(shape[1]) < lengths).astype(np.int64)
    segments = (np.arange(shape[1]) >= lengths // 2).astype(np.int64)
    if "--classes" in options:
        labels = random.randint(options["--classes"], size=BATCH)
    else:
        chosen = (random.uniform(size=shape) < 0.4) & (mask == 1)
        labels = np.where(chosen, random.randint(vocab, size=shape), -100)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments,
            "labels": labels}


def read_losses():
    return json.loads((pathlib.Path(__file__).parent / "model_losses.json").read_text())
