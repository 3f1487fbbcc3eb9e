"""What the whole-tool tests share: building small models, compiling, training, reading results.

The environment variable SGTC names the compiler. Every test is a function that takes a Bench, whose
folder is fresh, and raises AssertionError; run_tests() runs those that are named, else all.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from safetensors_file import read_safetensors

SGTC = os.environ.get("SGTC", "sgtc")
SGTC_MODEL = os.environ.get("SGTC_MODEL", "sgtc-model")


def floats(values):
    return np.array(values, np.float32)


def integers(values):
    return np.array(values, np.int64)


def build(nodes, tensors=None, inputs="", outputs="float L", opset=17, observe=()):
    """A model of `nodes` in ONNX's text form. `tensors` become initializers.

    Each name in `observe` maps a value to its shape: a trainable tensor of zeros, "see_NAME", is
    multiplied with it and summed into L, so that its gradient is the value in training mode.
    """
    text = (f'<ir_version: 8, opset_import: ["": {opset}]> test ({inputs}) => ({outputs}) '
            f"{{ {nodes} }}")
    model = parser.parse_model(text)
    graph = model.graph
    for name, value in (tensors or {}).items():
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    if observe:
        observe_values(graph, observe)
    return model


def observe_values(graph, observe):
    for node in graph.node:
        node.output[:] = ["loss_alone" if name == "L" else name for name in node.output]
    total = "loss_alone"
    for i, (name, shape) in enumerate(observe.items()):
        zeros = numpy_helper.from_array(np.zeros(shape, np.float32), "see_" + name)
        graph.initializer.append(zeros)
        last = i + 1 == len(observe)
        graph.node.extend([
            helper.make_node("Mul", ["see_" + name, name], [f"seen_{i}"]),
            helper.make_node("ReduceSum", [f"seen_{i}"], [f"sum_{i}"], keepdims=0),
            helper.make_node("Add", [total, f"sum_{i}"], ["L" if last else f"total_{i}"])])
        total = f"total_{i}"


def initial_values(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def expect_near(found, expected, tolerance=1e-5):
    """Equal shapes, and values within the tolerance relative to the largest expected value."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shape {found.shape}, expected {expected.shape}"
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(float(finite.max(initial=0)), 1e-30)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def expect_text(result, *words):
    """All `words` are in the messages of a program that ended."""
    for word in words:
        assert word in result.stderr, f"no '{word}' in: {result.stderr}"


class Bench:
    """A folder for one test, with the compiler and what it wrote."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def path(self, name):
        return self.folder / name

    def write_model(self, model, name="model.onnx"):
        data = model if isinstance(model, bytes) else model.SerializeToString()
        self.path(name).write_bytes(data)
        return self.path(name)

    def sgtc(self, *arguments, **options):
        return self.run(SGTC, *arguments, **options)

    def run(self, program, *arguments, **options):
        command = [str(word) for word in (program, *arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder,
                              timeout=300, check=False, **options)

    def model(self, name, *arguments):
        """Writes a model of sgtc-model as the one to compile."""
        result = self.run(SGTC_MODEL, name, "-o", "model.onnx", *arguments)
        assert result.returncode == 0, f"sgtc-model: exit {result.returncode}: {result.stderr}"

    def compile(self, model, *arguments, output="train"):
        """Must succeed; with SGD unless the arguments name an optimizer. None: model.onnx as it is."""
        options = [] if "--optimizer" in arguments else ["--optimizer", "sgd"]
        path = self.path("model.onnx") if model is None else self.write_model(model)
        result = self.sgtc(path, "-o", output, *options, *arguments)
        assert result.returncode == 0, f"sgtc: exit {result.returncode}: {result.stderr}"
        return result

    def refuse(self, model, *arguments):
        """The compiler must refuse with exit code 1 and leave no file; returns its messages."""
        result = self.sgtc(self.write_model(model), "-o", "refused", *arguments)
        assert result.returncode == 1, f"exit {result.returncode}: {result.stderr}"
        left = [path.name for path in self.folder.iterdir() if path.name.startswith("refused")]
        assert not left, f"left {left}"
        return result

    def start(self, *arguments, feeds=None, program="./train", **options):
        """Runs the executable with arrays as feeds; one of another type is taken as a path."""
        data = []
        for name, value in (feeds or {}).items():
            path = value
            if isinstance(value, np.ndarray):
                path = self.path(f"{name}.npy")
                np.save(path, value)
            data += ["--data", f"{name}={path}"]
        return self.run(self.path(program), "--quiet", "--threads", "2", *data, *arguments,
                        **options)

    def train(self, *arguments, feeds=None, steps=1, rate=1, program="./train", code=0):
        """Trains; returns the losses in the log and the weights."""
        log, weights = self.path("log.jsonl"), self.path("weights.safetensors")
        result = self.start("--steps", steps, "--lr", rate, "--log", log, "--save", weights,
                            *arguments, feeds=feeds, program=program)
        assert result.returncode == code, f"train: exit {result.returncode}: {result.stderr}"
        records = [json.loads(line) for line in log.read_text().splitlines()]
        self.log = [record for record in records if "loss" in record]
        losses = [float(record["loss"]) for record in self.log]
        return losses, (read_safetensors(weights) if weights.exists() else {})

    def probe(self, model, *arguments, feeds=None):
        """Loss and gradients of one step: weights before minus weights after with SGD and lr 1."""
        self.compile(model, *arguments)
        losses, after = self.train(feeds=feeds)
        before = initial_values(model)
        return losses[0], {name: before[name] - after[name] for name in after}

    def predict(self, output, feeds):
        """The rows of a graph output, in evaluation mode with the initial weights."""
        path = self.path("predicted.npy")
        result = self.start("--steps", 0, "--predict", f"{output}={path}", feeds=feeds)
        assert result.returncode == 0, f"predict: exit {result.returncode}: {result.stderr}"
        return np.load(path)


def run_tests(namespace, arguments):
    """Runs the functions test_* of a module, one line each; exits with 1 if one failed."""
    failed = 0
    for name, function in namespace.items():
        if not name.startswith("test_") or (arguments and name[5:] not in arguments):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Bench(folder))
                print(f"ok   {name[5:]}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"FAIL {name[5:]}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
