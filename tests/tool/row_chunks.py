"""Scores of a vocabulary, computed for some rows after others: the same training in less memory.

row_chunks.py [TEST...]
"""

import json
import sys

import numpy as np

from harness import expect_near, integers, run_tests

STEPS, WIDTH = 3, 16


def model(bench, name, vocabulary, sequence, *options):
    """Two layers, two rows of the sequence."""
    bench.model(name, "--layers", 2, "--width", WIDTH, "--heads", 2, "--vocab", vocabulary, "--seq",
                sequence, "--batch", 2, *options)


def feeds(vocabulary, sequence, rows):
    tokens = np.random.default_rng(5).integers(0, vocabulary, (rows, sequence + 1))
    return {"input_ids": integers(tokens[:, :-1]), "labels": integers(tokens[:, 1:])}


def plan_of(bench):
    return json.loads(bench.path("plan.json").read_text())[0]


def arena(bench):
    return max(position["arena_bytes"] for position in plan_of(bench)["positions"])


def widest(bench, vocabulary, width):
    """The largest buffer between what is as large as the vocabulary's weight, in bytes."""
    return max(buffer["bytes"] for position in plan_of(bench)["positions"]
               for buffer in position["buffers"] if buffer["shape"] != [vocabulary, width])


def train(bench, data, *options):
    """Losses, held-out losses and weights."""
    bench.compile(None, "--emit", "exe", "--emit", f"plan-json={bench.path('plan.json')}", *options)
    held_out = []
    for name, rows in data.items():
        np.save(bench.path(f"held_{name}.npy"), rows[:2])
        held_out += ["--eval", f"{name}={bench.path(f'held_{name}.npy')}"]
    losses, weights = bench.train(*held_out, "--eval-every", 1, feeds=data, steps=STEPS, rate=0.1)
    assert len(losses) == STEPS and losses[0] != losses[1]
    records = [json.loads(line) for line in bench.path("log.jsonl").read_text().splitlines()]
    return losses, [r["eval_loss"] for r in records if "eval_loss" in r], weights


def expect_alike(found, expected):
    expect_near(found[0], expected[0], 1e-6)
    assert len(expected[1]) == STEPS
    expect_near(found[1], expected[1], 1e-6)
    for name, value in expected[2].items():
        expect_near(found[2][name], value, 1e-5)


def expect_equal(found, expected):
    assert found[:2] == expected[:2], f"{found[:2]}, expected {expected[:2]}"
    for name, value in expected[2].items():
        assert found[2][name].tobytes() == value.tobytes(), name


def test_chunks_train_alike(bench):
    """Of 128 rows: even chunks, a shorter last one, one row each."""
    vocabulary, sequence = 512, 64
    model(bench, "gpt2", vocabulary, sequence)
    data = feeds(vocabulary, sequence, 2 * STEPS)
    expected = train(bench, data, "--row-chunks", "none")
    whole = arena(bench)
    assert widest(bench, vocabulary, WIDTH) == 128 * vocabulary * 4
    for count in (2, 3, 128):
        expect_alike(train(bench, data, "--row-chunks", count), expected)
        assert arena(bench) < whole, f"{arena(bench)} of {whole}"
        assert widest(bench, vocabulary, WIDTH) < 128 * vocabulary * 4


def test_untied_weights_and_micro_batches(bench):
    """Llama's weight of scores is a parameter of its own."""
    vocabulary, sequence = 256, 32
    model(bench, "llama", vocabulary, sequence, "--kv-heads", 1)
    data = feeds(vocabulary, sequence, 6 * STEPS)
    expected = train(bench, data, "--row-chunks", "none", "--micro-batches", 3)
    expect_alike(train(bench, data, "--row-chunks", 3, "--micro-batches", 3), expected)


def test_meshes(bench):
    """A pipeline has the bits of one position; replicas agree to rounding."""
    vocabulary, sequence = 256, 32
    model(bench, "gpt2", vocabulary, sequence)
    data = feeds(vocabulary, sequence, 8 * STEPS)
    options = ("--row-chunks", 2, "--micro-batches")
    expected = train(bench, data, *options, 4)
    expect_equal(train(bench, data, *options, 4, "--mesh", "2x1"), expected)
    expect_equal(train(bench, data, *options, 4, "--mesh", "2x1", "--schedule", "gpipe"), expected)
    expect_alike(train(bench, data, *options, 2, "--mesh", "1x2"), expected)


def test_memory_and_precision(bench):
    vocabulary, sequence = 256, 32
    model(bench, "gpt2", vocabulary, sequence)
    data = feeds(vocabulary, sequence, 2 * STEPS)
    expected = train(bench, data, "--row-chunks", 2, "--recompute", "none")
    expect_equal(train(bench, data, "--row-chunks", 2, "--recompute", "full"), expected)
    whole = train(bench, data, "--row-chunks", "none", "--precision", "bf16")
    chunked = train(bench, data, "--row-chunks", 2, "--precision", "bf16")
    expect_near(chunked[0], whole[0], 1e-4)


def test_what_is_chosen(bench):
    """512 rows with many scores are split, 256 are not."""
    vocabulary, rows = 8192, 512
    for sequence, chunks in ((rows // 2, 2), (rows // 4, 1)):
        model(bench, "gpt2", vocabulary, sequence)
        bench.compile(None, "--emit", f"plan-json={bench.path('plan.json')}")
        assert widest(bench, vocabulary, WIDTH) == 2 * sequence * vocabulary * 4 // chunks


def test_what_would_fit_on_a_gpu(bench):
    """There nothing is split unasked, and a step that does not fit says what it would save."""
    model(bench, "gpt2", 4096, 256)
    target = ("--target", "sm_90a", "--precision", "bf16", "--emit",
              f"plan-json={bench.path('plan.json')}")
    least = {}
    for chunks in ("auto", 1, 4):
        bench.compile(None, *target, "--recompute", "full", "--row-chunks", chunks)
        least[chunks] = arena(bench)
    assert least["auto"] == least[1] > least[4]
    budget = (least[1] + least[4]) // 2
    result = bench.sgtc("model.onnx", "-o", "refused", *target[:4], "--memory", budget)
    assert result.returncode == 1 and "--row-chunks 4: " in result.stderr, result.stderr


def test_numbers_that_are_none(bench):
    model(bench, "gpt2", 64, 8)
    for word in ("-1", "some"):
        result = bench.sgtc(bench.path("model.onnx"), "-o", "refused", "--row-chunks", word)
        assert result.returncode == 2 and "--row-chunks" in result.stderr, result.stderr
        assert not bench.path("refused").exists()


if __name__ == "__main__":
    run_tests(globals(), sys.argv[1:])
