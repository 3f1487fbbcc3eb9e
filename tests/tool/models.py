"""Models of sgtc-model train as the modules of PyTorch with the same weights and data do.

The losses are those of reference/make_model_losses.py.
"""

import pathlib
import sys

import numpy as np

from harness import run_tests
from safetensors_file import write_safetensors

sys.path.insert(0, str(pathlib.Path(__file__).parent / "reference"))
import model_cases  # noqa: E402

TOLERANCE = 2e-5


def follows_pytorch(bench, case, *options):
    path = bench.path("model.onnx")
    model_cases.write_model(case, path, *options)
    weights = bench.path("initial.safetensors")
    write_safetensors(weights, model_cases.make_weights(model_cases.shapes_of(path)))
    name = model_cases.CASES[case][2]
    settings = model_cases.OPTIMIZERS[name]
    chosen = ["--optimizer", name]
    if name == "adamw":
        chosen += ["--betas", ",".join(map(str, settings["betas"])), "--eps", settings["eps"],
                   "--weight-decay", settings["weight_decay"]]
    bench.compile(None, *chosen)
    losses, _ = bench.train("--init", weights, feeds=model_cases.make_feeds(case),
                            steps=model_cases.STEPS, rate=settings["lr"])
    np.testing.assert_allclose(losses, model_cases.read_losses()[case], rtol=TOLERANCE)


def test_resnet_of_basic_blocks(bench):
    follows_pytorch(bench, "resnet-basic")


def test_resnet_of_bottlenecks(bench):
    follows_pytorch(bench, "resnet-bottleneck")


def test_llama_with_shared_heads_and_slowed_rotation(bench):
    follows_pytorch(bench, "llama")


def test_llama_with_a_head_of_its_own(bench):
    follows_pytorch(bench, "llama-untied")


def test_llama_of_whole_operators(bench):
    follows_pytorch(bench, "llama", "--opset", "23")
    follows_pytorch(bench, "llama-untied", "--opset", "23")


def test_bert_guesses_masked_tokens(bench):
    follows_pytorch(bench, "bert-tokens")


def test_bert_sorts_rows(bench):
    follows_pytorch(bench, "bert-rows")


def test_bert_of_whole_operators(bench):
    follows_pytorch(bench, "bert-tokens", "--opset", "23")


def test_vit(bench):
    follows_pytorch(bench, "vit")


def test_vit_of_whole_operators(bench):
    follows_pytorch(bench, "vit", "--opset", "20")
    follows_pytorch(bench, "vit", "--opset", "23")


run_tests(globals(), sys.argv[1:])
