"""Random training graphs: micro-batches and pipelines train like one batch on one rank.

random_models.py [TEST...]; SGTC_RANDOM_TRAININGS says how many graphs, few by default.
"""

import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness import expect_near, run_tests
from mesh_models import train

COUNT = int(os.environ.get("SGTC_RANDOM_TRAININGS", "3"))
ROWS, STEPS = 4, 3


class RandomModel:
    """A graph whose rows do not meet but in the loss; one seed gives one graph for any batch."""

    def __init__(self, seed, rows):
        self.random = np.random.default_rng(seed)
        self.rows, self.nodes, self.tensors, self.values = rows, [], [], []

    def integer(self, low, high):
        return int(self.random.integers(low, high, endpoint=True))

    def pick(self, values):
        return values[self.integer(0, len(values) - 1)]

    def parameter(self, shape):
        name = f"p{len(self.tensors)}"
        values = self.random.normal(size=shape).astype(np.float32) / 2
        self.tensors.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, values):
        name = f"c{len(self.nodes)}"
        tensor = numpy_helper.from_array(np.array(values, np.int64))
        self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def add(self, op, inputs, shape, **attributes):
        """Appends a node with a result of `shape` (without the rows)."""
        name = f"v{len(self.nodes)}"
        extra = [f"{name}.unused"] if op == "TopK" else []
        self.nodes.append(helper.make_node(op, inputs, [name, *extra], name=name, **attributes))
        self.values.append((name, list(shape)))

    def value(self, rank=None):
        """A value with as many dimensions besides the rows; the newest one more often."""
        fitting = [v for v in self.values if rank is None or len(v[1]) == rank]
        return fitting[-1] if self.integer(0, 1) else self.pick(fitting)

    # One function per kind of node; each draws its operands.
    def unary(self):
        x, shape = self.value()
        self.add(self.pick(["Tanh", "Sigmoid", "Softplus", "Sin", "Erf", "Relu", "Softsign", "Elu",
                            "Atan", "Gelu"]), [x], shape)

    def affine(self):
        x, shape = self.value()
        self.add(self.pick(["Add", "Mul", "Sub", "Max"]), [x, self.parameter(shape)], shape)

    def product(self):
        x, shape = self.value()
        columns = self.integer(1, 6)
        self.add("MatMul", [x, self.parameter([shape[-1], columns])], [*shape[:-1], columns])

    def join(self):
        x, shape = self.value()
        other = self.pick([v for v in self.values if v[1] == shape])[0]
        self.add(self.pick(["Add", "Mul", "Sub", "Min"]), [x, other], shape)

    def normalization(self):
        x, shape = self.value()
        names = [x, self.parameter(shape[-1:]), self.parameter(shape[-1:])]
        self.add("LayerNormalization", names, shape, epsilon=1e-2)

    def softmax(self):
        x, shape = self.value()
        self.add(self.pick(["Softmax", "LogSoftmax"]), [x], shape, axis=-1)

    def concat(self):
        x, shape = self.value()
        other, other_shape = self.pick([v for v in self.values if v[1][:-1] == shape[:-1]])
        self.add("Concat", [x, other], [*shape[:-1], shape[-1] + other_shape[-1]], axis=-1)

    def slice(self):
        x, shape = self.value()
        first = self.integer(0, shape[-1] - 1)
        bounds = [self.constant([first]), self.constant([shape[-1]]), self.constant([len(shape)])]
        self.add("Slice", [x, *bounds], [*shape[:-1], shape[-1] - first])

    def fold(self):
        x, (size,) = self.value(1)
        parts = self.pick([k for k in range(1, size + 1) if size % k == 0])
        self.add("Reshape", [x, self.constant([0, parts, -1])], [parts, size // parts])

    def unfold(self):
        x, shape = self.values[-1]
        self.add("Flatten", [x], [int(np.prod(shape))])

    def transpose(self):
        x, shape = self.value(2)
        self.add("Transpose", [x], shape[::-1], perm=[0, 2, 1])

    def reduction(self):
        x, shape = self.value(2)
        op = self.pick(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "ReduceLogSumExp"])
        self.add(op, [x, self.constant([1])], shape[1:], keepdims=0)

    def convolution(self):
        x, (channels, length) = self.value(2)
        made = self.integer(1, 3)
        names = [x, self.parameter([made, channels, 3]), self.parameter([made])]
        self.add("Conv", names, [made, length], pads=[1, 1])

    def recurrence(self):
        x, (length, width) = self.value(2)
        hidden = self.integer(1, 3)
        names = [x, self.parameter([1, 3 * hidden, width]), self.parameter([1, 3 * hidden, hidden])]
        swapped = f"v{len(self.nodes)}.swapped"
        self.nodes.append(helper.make_node("Transpose", [x], [swapped], perm=[1, 0, 2]))
        last = f"v{len(self.nodes)}.last"
        self.nodes.append(helper.make_node("GRU", [swapped, *names[1:]], ["", last],
                                           hidden_size=hidden))
        self.add("Squeeze", [last, self.constant([0])], [hidden])

    def scan(self):
        x, shape = self.value()
        self.add("CumSum", [x, self.constant(len(shape))], shape, reverse=self.integer(0, 1))

    def best(self):
        x, shape = self.value()
        count = self.integer(1, shape[-1])
        self.add("TopK", [x, self.constant([count])], [*shape[:-1], count], axis=-1)

    def lookup(self):
        x, shape = self.value()
        taken = [self.integer(-shape[-1], shape[-1] - 1) for _ in range(self.integer(1, 4))]
        self.add("Gather", [x, self.constant(taken)], [*shape[:-1], len(taken)], axis=len(shape))

    def pad(self):
        x, shape = self.value()
        pads = [0] * len(shape) + [self.integer(0, 2)] + [0] * len(shape) + [self.integer(0, 2)]
        self.add("Pad", [x, self.constant(pads)], [*shape[:-1], shape[-1] + sum(pads)])

    def narrow(self):
        """The newest value as a vector of few elements."""
        self.unfold()
        x, shape = self.values[-1]
        columns = self.integer(2, 6)
        self.add("MatMul", [x, self.parameter([*shape, columns])], [columns])

    def build(self, count):
        kinds = [self.unary, self.affine, self.product, self.join, self.normalization, self.softmax,
                 self.concat, self.slice, self.unfold, self.transpose, self.reduction,
                 self.convolution, self.recurrence, self.scan, self.best, self.lookup, self.pad]
        self.values.append(("x", [6]))
        self.product()
        self.fold()
        self.values.pop(0)  # so that all later values depend on a parameter
        for _ in range(count):
            self.pick(kinds)()
            if np.prod(self.values[-1][1]) > 64:
                self.narrow()
        self.narrow()
        x, shape = self.values[-1]
        self.add("Mul", [x, x], shape)
        self.nodes.append(helper.make_node("ReduceMean", [self.values[-1][0]], ["L"], keepdims=0))
        feed = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [self.rows, 6])
        loss = helper.make_tensor_value_info("L", onnx.TensorProto.FLOAT, [])
        graph = helper.make_graph(self.nodes, "random", [feed], [loss], self.tensors)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def data(seed):
    random = np.random.default_rng(seed)
    return {"x": random.normal(size=(ROWS * STEPS, 6)).astype(np.float32)}


def test_micro_batches_train_like_one_batch(bench):
    for seed in range(COUNT):
        expected = None
        for micro_batches in (1, 2, 4):
            model = RandomModel(seed, ROWS // micro_batches).build(10 + seed % 10)
            bench.compile(model, "--micro-batches", micro_batches, "--optimizer", "sgd")
            losses, weights = bench.train(feeds=data(seed), steps=STEPS, rate=0.01)
            if expected is None:
                assert np.isfinite(losses).all(), seed
                expected = losses, weights
                continue
            np.testing.assert_allclose(losses, expected[0], rtol=1e-4, err_msg=f"seed {seed}")
            for name, value in weights.items():
                expect_near(value, expected[1][name], 1e-4)


def test_pipelines_have_the_same_bits(bench):
    for seed in range(COUNT):
        model = RandomModel(seed, ROWS // 2).build(10 + seed % 10)
        bench.compile(model, "--mesh", "1x1,2x1", "--micro-batches", 2, "--optimizer", "sgd")
        expected = train(bench, "1x1", data(seed), steps=STEPS)
        assert train(bench, "2x1", data(seed), steps=STEPS).bits() == expected.bits(), seed


run_tests(globals(), sys.argv[1:])
