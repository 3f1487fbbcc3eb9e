"""Training with --precision bf16: near float32, repeatable, with float32 states.

mixed_precision.py [TEST...]
"""

import json
import os
import pathlib
import sys

import numpy as np

from harness import expect_near, run_tests
from mesh_models import cnn_data, gpt2_data, train, write_cnn, write_gpt2
from small_models import LENGTH, language_data, language_model

ROWS, STEPS = 6, 4
BF16 = ["--precision", "bf16"]
ADAM = ["--optimizer", "adamw"]
REFERENCE = pathlib.Path(__file__).parent / "reference" / "bf16_losses.json"


def test_losses_are_near_those_of_float32(bench):
    losses = {}
    for precision in ("fp32", "bf16"):
        bench.compile(language_model(ROWS), *ADAM, "--precision", precision)
        losses[precision], weights = bench.train(feeds=language_data(ROWS), steps=STEPS, rate=0.01)
        assert all(value.dtype == np.float32 for value in weights.values())
    assert losses["bf16"] != losses["fp32"] and losses["bf16"][-1] < losses["bf16"][0]
    np.testing.assert_allclose(losses["bf16"], losses["fp32"], rtol=5e-3)


def test_gradients_are_near_those_of_float32(bench):
    model, feeds = language_model(ROWS), language_data(ROWS)
    _, expected = bench.probe(model, feeds=feeds)
    _, found = bench.probe(model, *BF16, feeds=feeds)
    for name, gradient in expected.items():
        expect_near(found[name], gradient, 0.02)


def test_two_runs_have_the_same_bits(bench):
    bench.compile(language_model(ROWS), *ADAM, *BF16)
    runs = [bench.train(feeds=language_data(ROWS), steps=STEPS, rate=0.01) for _ in range(2)]
    assert runs[0][0] == runs[1][0]
    for name, value in runs[0][1].items():
        np.testing.assert_array_equal(value, runs[1][1][name])


def test_micro_batches_make_the_same_step(bench):
    losses = []
    for micro_batches in (1, 2, 3):
        bench.compile(language_model(ROWS // micro_batches), *ADAM, *BF16, "--micro-batches",
                      micro_batches)
        losses.append(bench.train(feeds=language_data(ROWS), steps=STEPS, rate=0.01)[0])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-4)


def test_predictions_keep_their_type(bench):
    bench.compile(language_model(ROWS), *BF16)
    found = bench.predict("Y", language_data(ROWS))
    assert found.dtype == np.float32 and found.shape[1] == LENGTH
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-5)


def compare_pipelines(bench, feeds):
    bench.compile(None, "--mesh", "1x1,2x1", "--micro-batches", 4, *ADAM, *BF16)
    assert train(bench, "2x1", feeds).bits() == train(bench, "1x1", feeds).bits()


def test_pipelines_of_a_tied_transformer_have_the_same_bits(bench):
    write_gpt2(bench)
    compare_pipelines(bench, gpt2_data())


def test_pipelines_of_a_normalized_network_have_the_same_bits(bench):
    write_cnn(bench)
    compare_pipelines(bench, cnn_data())


def exported_losses(bench, path, precision, steps):
    description = json.loads((path.parent / "expected.json").read_text())
    settings = description["adamw"]
    betas = ",".join(map(str, settings["betas"]))
    compiled = bench.sgtc(path, "-o", "train", *ADAM, "--precision", precision, "--betas", betas,
                          "--eps", settings["eps"], "--weight-decay", settings["weight_decay"])
    assert compiled.returncode == 0, compiled.stderr
    feeds = {name: path.parent / f"{name}.npy" for name in description["inputs"]}
    return np.array(bench.train(feeds=feeds, steps=steps, rate=settings["lr"])[0])


def test_losses_of_exported_models_are_off_float32_as_those_of_autocast(bench):
    """No loss is farther from float32's than twice the largest such distance in PyTorch. Each has
    its own losses in float32: PyTorch runs the file, whose parameters may be merged or constant
    there; sgtc restores them."""
    folder = pathlib.Path(os.environ.get("SGTC_SHARED", "")) / "data/exported"
    if not folder.exists():
        print("     no exported models here")
        return
    for model, expected in json.loads(REFERENCE.read_text()).items():
        most = np.abs(np.subtract(expected["bf16"], expected["fp32"])).max()
        steps = len(expected["bf16"])
        mixed, wide = (exported_losses(bench, folder / f"{model}.onnx", precision, steps)
                       for precision in ("bf16", "fp32"))
        off = np.abs(mixed - wide).max()
        print(f"     {model}: off float32 by {off:.1e}, autocast by {most:.1e}", flush=True)
        assert off <= 2 * most, model


run_tests(globals(), sys.argv[1:])
