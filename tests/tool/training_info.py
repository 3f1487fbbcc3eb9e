"""Models that bring a training algorithm (TrainingInfoProto) follow it, as ONNX defines it.

training_info.py [TEST...]
"""

import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from harness import build, expect_near, expect_text, floats, integers, read_safetensors, run_tests

RNG = np.random.default_rng(3)
X, Y = floats(RNG.normal(size=(8, 3))), floats(RNG.normal(size=(8, 1)))
W, B = floats(RNG.normal(size=(3, 1))), floats([0.5])
TRAINING = "ai.onnx.preview.training"
GRADIENT = f'{TRAINING}.Gradient <xs = ["W", "B"], zs = ["x", "y"], y = "L">(W, B, x, y)'
LOSS = "d = Sub(p, y) q = Mul(d, d) L = ReduceMean <keepdims = 0>(q) "


def algorithm_model(nodes, tensors, updates, rows=8, inputs="float R, ", outputs="float L"):
    """A linear model, whose loss and update are in the algorithm."""
    model = build("m = MatMul(x, W) p = Add(m, B)", {"W": W, "B": B},
                  inputs=f"float[{rows}, 3] x", outputs=f"float[{rows}, 1] p")
    model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    header = f'<ir_version: 8, opset_import: ["": 17, "{TRAINING}": 1]> step '
    info = model.training_info.add()
    info.algorithm.CopyFrom(parser.parse_model(
        f"{header} ({inputs}float[{rows}, 1] y) => ({outputs}) {{ {nodes} }}").graph)
    for name, value in tensors.items():
        info.algorithm.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    for key, value in updates.items():
        info.update_binding.add(key=key, value=value)
    return model


def adam_model(rows=8, attributes="epsilon = 0.01", tensors=None, **options):
    nodes = (LOSS + f"dW, dB = {GRADIENT} "
             f"W2, B2, V2, U2, H2, I2 = {TRAINING}.Adam <{attributes}>"
             "(R, T, W, B, dW, dB, V, U, H, I) T2 = Add(T, one)")
    zeros = {"T": integers(0), "one": integers(1), "V": 0 * W, "U": 0 * B, "H": 0 * W, "I": 0 * B}
    updates = {name: name + "2" for name in ("W", "B", "V", "U", "H", "I", "T")}
    return algorithm_model(nodes, {**zeros, **(tensors or {})}, updates, rows, **options)


def gradients(w, b):
    """Loss and gradients of the linear model in double."""
    d = X.astype(np.float64) @ w + b - Y
    return (d * d).mean(), 2 * X.T @ d / len(X), 2 * d.sum(0) / len(X)


def follow(update, steps, rate):
    """Losses and parameters of `steps` of update(t, rate, parameter, gradient, state)."""
    values = [W.astype(np.float64), B.astype(np.float64)]
    states, losses = [{}, {}], []
    for t in range(steps):
        loss, *slopes = gradients(*values)
        losses.append(loss)
        values = [update(t, rate, *both) for both in zip(values, slopes, states)]
    return losses, values


def check_training(bench, model, update, *arguments, rate=0.1, steps=5):
    result = bench.sgtc(bench.write_model(model), "-o", "train", *arguments)
    assert result.returncode == 0, result.stderr
    losses, after = bench.train(feeds={"x": X, "y": Y}, steps=steps, rate=rate)
    expected, (w, b) = follow(update, steps, rate)
    expect_near(losses, expected, 1e-6)
    expect_near(after["W"], w, 1e-5)
    expect_near(after["B"], b, 1e-5)
    return after


def adam(alpha=0.9, beta=0.999, epsilon=0.01, norm=0, post=0):
    # ONNX keeps attributes in float32.
    alpha, beta, epsilon = (float(np.float32(value)) for value in (alpha, beta, epsilon))

    def update(t, rate, x, g, state):
        g = g + norm * x
        v = state["v"] = alpha * state.get("v", 0) + (1 - alpha) * g
        h = state["h"] = beta * state.get("h", 0) + (1 - beta) * g * g
        if t > 0:
            rate = rate * np.sqrt(1 - beta ** t) / (1 - alpha ** t)
        return (1 - post) * (x - rate * v / (np.sqrt(h) + epsilon))
    return update


def test_adam_with_its_count(bench):
    after = check_training(bench, adam_model(), adam())
    assert after.keys() == {"W", "B"}


def test_adam_with_all_its_attributes(bench):
    attributes = ("alpha = 0.5, beta = 0.75, epsilon = 0.125, norm_coefficient = 0.25, "
                  "norm_coefficient_post = 0.0625")
    check_training(bench, adam_model(attributes=attributes), adam(0.5, 0.75, 0.125, 0.25, 0.0625))


def test_micro_batches_are_one_batch(bench):
    check_training(bench, adam_model(rows=4), adam(), "--micro-batches", "2")


def test_momentum(bench):
    def momentum(nesterov):
        def update(t, rate, x, g, state):
            g = g + 0.125 * x
            v = state["v"] = 0.75 * state.get("v", 0) + (0.5 if t > 0 else 1) * g
            return x - rate * (g + 0.75 * v if nesterov else v)
        return update

    for mode in ("standard", "nesterov"):
        nodes = (LOSS + f"dW, dB = {GRADIENT} W2, B2, V2, U2 = {TRAINING}.Momentum "
                 f'<mode = "{mode}", alpha = 0.75, beta = 0.5, norm_coefficient = 0.125>'
                 "(R, T, W, B, dW, dB, V, U) T2 = Add(T, one)")
        model = algorithm_model(nodes, {"T": integers(0), "one": integers(1), "V": 0 * W,
                                        "U": 0 * B}, {name: name + "2" for name in "WBVUT"})
        check_training(bench, model, momentum(mode == "nesterov"))


def test_adagrad_with_a_node_each(bench):
    def adagrad(t, rate, x, g, state):
        h = state["h"] = state.get("h", 0) + g * g
        return x - rate / (1 + 0.25 * t) * g / (np.sqrt(h) + 0.125)

    attributes = "decay_factor = 0.25, epsilon = 0.125"
    nodes = (LOSS + f"dW, dB = {GRADIENT} W2, V2 = {TRAINING}.Adagrad <{attributes}>"
             f"(R, T, W, dW, V) B2, U2 = {TRAINING}.Adagrad <{attributes}>(R, T, B, dB, U) "
             "T2 = Add(T, one)")
    model = algorithm_model(nodes, {"T": integers(0), "one": integers(1), "V": 0 * W, "U": 0 * B},
                            {name: name + "2" for name in "WBVUT"})
    check_training(bench, model, adagrad, rate=1)


def sgd(_, rate, x, g, __):
    return x - rate * g


PLAIN = f"dW, dB = {GRADIENT} sW = Mul(R, dW) W2 = Sub(W, sW) sB = Mul(R, dB) B2 = Sub(B, sB)"


def test_an_update_of_plain_nodes(bench):
    model = algorithm_model(LOSS + PLAIN, {}, {"W": "W2", "B": "B2"})
    check_training(bench, model, sgd)


def test_a_learning_rate_of_the_file(bench):
    model = algorithm_model(LOSS + PLAIN + " R2 = Mul(R, half)",
                            {"R": floats(0.1), "half": floats(0.5)},
                            {"W": "W2", "B": "B2", "R": "R2"}, inputs="")
    result = bench.sgtc(bench.write_model(model), "-o", "train")
    assert result.returncode == 0, result.stderr
    result = bench.start("--steps", 1, "--lr", 1, feeds={"x": X, "y": Y})
    assert result.returncode == 2
    expect_text(result, "--lr", "the model")
    result = bench.start("--steps", 2, "--save", bench.path("w"), "--log", bench.path("log"),
                         feeds={"x": X, "y": Y})
    assert result.returncode == 0, result.stderr
    assert '"lr"' not in bench.path("log").read_text()
    w, b = W, B
    for rate in (0.1, 0.05):
        _, dw, db = gradients(w, b)
        w, b = w - rate * dw, b - rate * db
    expect_near(read_safetensors(bench.path("w"))["W"], w, 1e-6)


def test_gradients_by_hand_need_one_micro_batch(bench):
    nodes = (LOSS + "xT = Transpose(x) g = MatMul(xT, d) dW = Mul(g, quarter) s = Mul(R, dW) "
             "W2 = Sub(W, s)")
    model = algorithm_model(nodes, {"quarter": floats(0.25)}, {"W": "W2"})
    result = bench.sgtc(bench.write_model(model), "-o", "train")
    assert result.returncode == 0, result.stderr
    _, after = bench.train(feeds={"x": X, "y": Y}, rate=0.1)
    expect_near(after["W"], W - 0.1 * gradients(W, B)[1], 1e-6)
    expect_near(after["B"], B, 0)
    expect_text(bench.refuse(model, "--micro-batches", "2"), "2 micro-batches", '"d"',
                "use one micro-batch")


def test_checkpoints_hold_the_moments_and_the_count(bench):
    bench.sgtc(bench.write_model(adam_model()), "-o", "train")
    feeds, folder = {"x": X, "y": Y}, bench.path("checkpoint")
    whole, weights = bench.train(feeds=feeds, steps=4, rate=0.1)
    bench.train("--checkpoint", folder, feeds=feeds, steps=2, rate=0.1)
    moments = read_safetensors(next(folder.iterdir()) / "optimizer.safetensors")
    assert moments.keys() == set("TVUHI") and moments["T"] == 2 and moments["T"].dtype == np.int64
    losses, resumed = bench.train("--resume", folder, feeds=feeds, steps=4, rate=0.1)
    assert losses == whole[-len(losses):]
    for name, value in weights.items():
        assert np.array_equal(value, resumed[name])


def test_the_initialization_fills_tensors_of_the_algorithm(bench):
    model = adam_model(tensors={"T": integers(7)})
    info = model.training_info[0]
    info.initialization.CopyFrom(parser.parse_graph(
        "start () => (int64 t0, float[3, 1] w0) { t0 = Constant <value = int64 {0}> () "
        "half = Constant <value_float = 0.5> () s = Constant <value = int64[2] {3, 1}> () "
        "w0 = Expand(half, s) }"))
    info.initialization_binding.add(key="T", value="t0")
    info.initialization_binding.add(key="W", value="w0")
    result = bench.sgtc(bench.write_model(model), "-o", "train")
    assert result.returncode == 0, result.stderr
    losses, _ = bench.train(feeds={"x": X, "y": Y}, rate=0.1)
    expect_near(losses[0], gradients(np.full((3, 1), 0.5), B)[0], 1e-6)


def test_a_step_that_is_not_finite_counts_nothing(bench):
    bench.sgtc(bench.write_model(adam_model()), "-o", "train")
    x = X.copy()
    x[0, 0] = np.inf
    _, after = bench.train("--checkpoint", bench.path("c"), feeds={"x": x, "y": Y}, rate=0.1)
    expect_near(after["W"], W, 0)
    moments = read_safetensors(next(bench.path("c").iterdir()) / "optimizer.safetensors")
    assert moments["T"] == 0 and (moments["V"] == 0).all()


def test_other_optimizers_are_refused(bench):
    for option in (["--optimizer", "sgd"], ["--eps", "1"], ["--train", "W"], ["--freeze", "B"],
                   ["--loss", "p"]):
        expect_text(bench.refuse(adam_model(), *option), option[0], "training_info")


def test_faulty_algorithms_are_refused(bench):
    update = {"W": "W2", "B": "B2"}
    plain = LOSS + PLAIN
    cases = [
        (algorithm_model(plain, {}, {"W": "nothing"}), "nothing computes"),
        (algorithm_model(plain, {}, {"p": "W2"}), "no initializer of that name"),
        (algorithm_model(plain, {}, {"W": "B2"}), "expected a value of type"),
        (algorithm_model(plain, {}, {}), "update_binding is empty"),
        (algorithm_model(plain.replace('y = "L"', 'y = "q"'), {}, update), "expected a scalar float"),
        (algorithm_model(plain.replace('"W", "B"]', '"m", "B"]').replace("(W, B, x", "(m, B, x"),
                         {}, update), '"m" in xs is not an initializer'),
        (algorithm_model(plain.replace("(W, B, x", "(B, B, x"), {}, update), "xs and zs name"),
        (algorithm_model(plain + " r = Identity(S)", {}, {**update, "S": "r"},
                         inputs="float R, float S, "), "no initializer"),
        (algorithm_model(plain.replace("Mul(R, dB)", "Mul(S, dB)"), {}, update,
                         inputs="float R, float S, "), "make it an initializer"),
    ]
    for model, text in cases:
        expect_text(bench.refuse(model), text)
    twice = adam_model()
    twice.training_info.append(twice.training_info[0])
    expect_text(bench.refuse(twice), "more than one training algorithm")


def test_external_data_of_an_algorithm_stays_beneath_the_model(bench):
    model = adam_model()
    tensor = next(t for t in model.training_info[0].algorithm.initializer if t.name == "V")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    expect_text(bench.refuse(model), '"V"', "lies outside the model's folder")


def test_gradients_at_other_values(bench):
    model = build(f'c = Mul(a, a) g = {TRAINING}.Gradient <xs = ["a"], y = "c">(b) L = Mul(g, w)',
                  {"w": floats(1)}, inputs="float a, float b", outputs="float L, float c")
    model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    bench.compile(model, "--loss", "L")
    losses, _ = bench.train(feeds={"a": floats([3]), "b": floats([5])})
    assert losses == [10]


def test_gradients_of_gradients(bench):
    model = build(f'c = Mul(a, a) d = Mul(c, a) g = {TRAINING}.Gradient <xs = ["a"], y = "d">(a) '
                  "L = Mul(g, g)", {"a": floats(2)})
    model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    loss, found = bench.probe(model)
    assert loss == 144  # (3 a^2)^2
    expect_near(found["a"], 4 * 9 * 8, 1e-6)


run_tests(globals(), sys.argv[1:])
