"""Steps that compute values again in the backward phase fit their budget and keep their bits.

recompute.py [TEST...]
"""

import json
import os
import re
import sys

import numpy as np

from harness import expect_text, integers, run_tests

STEPS, ROWS, SEQUENCE, VOCABULARY = 3, 2, 32, 96
GPT = ("gpt2", "--layers", 4, "--width", 32, "--heads", 2, "--vocab", VOCABULARY, "--seq", SEQUENCE,
       "--context", SEQUENCE, "--batch", ROWS, "--dropout", 0.2)


def feeds(rows):
    tokens = np.random.default_rng(5).integers(0, VOCABULARY, (rows, SEQUENCE + 1))
    return {"input_ids": integers(tokens[:, :-1]), "labels": integers(tokens[:, 1:])}


def arenas(bench):
    plan = json.loads(bench.path("plan.json").read_text())[0]
    return [position["arena_bytes"] for position in plan["positions"]]


def flops(bench):
    """Of one micro-batch on all positions, and of the update."""
    plan = json.loads(bench.path("plan.json").read_text())[0]
    kernels = {kernel["symbol"]: kernel["flops"] for kernel in plan["kernels"]}
    return sum(kernels[call["kernel"]] for position in plan["positions"]
               for task in position["tasks"] for call in task.get("calls", []))


def compile_and_train(bench, micro_batches, *options):
    bench.compile(None, "--emit", "exe", "--emit", f"plan-json={bench.path('plan.json')}",
                  "--micro-batches", micro_batches, *options)
    losses, weights = bench.train(feeds=feeds(ROWS * micro_batches * STEPS), steps=STEPS, rate=0.1)
    assert len(losses) == STEPS and losses[0] != losses[1]
    return losses, weights


def expect_equal(found, expected):
    assert found[0] == expected[0], f"losses {found[0]}, expected {expected[0]}"
    for name, value in expected[1].items():
        assert found[1][name].tobytes() == value.tobytes(), name


def compare(bench, micro_batches, *options):
    """None, full and a budget between the two, for each position of a mesh."""
    bench.model(*GPT)
    expected = compile_and_train(bench, micro_batches, "--recompute", "none", *options)
    whole, work = max(arenas(bench)), flops(bench)
    expect_equal(compile_and_train(bench, micro_batches, "--recompute", "full", *options), expected)
    least = max(arenas(bench))
    assert least < whole and flops(bench) > work
    for share in (0.7, 0.3):
        budget = int(least + share * (whole - least))
        expect_equal(compile_and_train(bench, micro_batches, "--memory", budget, *options),
                     expected)
        assert max(arenas(bench)) <= budget, f"{arenas(bench)}, budget {budget}"
        assert flops(bench) > work


def test_one_device(bench):
    compare(bench, 1)
    # What a run touches is what was planned.
    result = bench.start("--steps", 1, feeds=feeds(ROWS), env={**os.environ, "SGTC_POISON": "1"})
    touched, arena = re.search(r"highest byte touched (\d+) of (\d+)", result.stdout).groups()
    assert int(arena) == arenas(bench)[0] and int(arena) - 64 < int(touched) <= int(arena)


def test_micro_batches(bench):
    compare(bench, 3)


def test_pipeline(bench):
    compare(bench, 3, "--mesh", "2x1")


def test_budget_that_is_kept_anyway(bench):
    bench.model(*GPT)
    expected = compile_and_train(bench, 1)
    work = flops(bench)
    expect_equal(compile_and_train(bench, 1, "--memory", "1GiB"), expected)
    assert flops(bench) == work


def test_budget_that_nothing_fits(bench):
    bench.model(*GPT)
    result = bench.sgtc(bench.path("model.onnx"), "-o", "refused", "--memory", "100KiB")
    assert result.returncode == 1, result.stderr
    expect_text(result, "found a limit of 100.0 KiB", "live at its peak", "parameters",
                "kept for the backward phase", "h.0", "--memory ")
    assert not bench.path("refused").exists()


def test_what_would_fit(bench):
    """The message names other ways, and each of them works."""
    bench.model(*GPT[:-4], "--batch", "B", *GPT[-2:])
    model = (bench.path("model.onnx"), "--dim", f"B={4 * ROWS}")
    bench.sgtc(*model, "--recompute", "full", "--emit", f"plan-json={bench.path('plan.json')}")
    budget = int(0.6 * max(arenas(bench)))
    result = bench.sgtc(*model, "-o", "refused", "--memory", budget)
    assert result.returncode == 1, result.stderr
    ways = dict(re.findall(r"^  --(\w+) (.*?): .* per rank, step ", result.stderr, re.MULTILINE))
    assert set(ways) == {"memory", "mesh", "dim"}, result.stderr
    for option, value in ways.items():
        words = [*model[:1], *f"--{option} {value}".split()]
        if option != "dim":
            words += model[1:]
        if option != "memory":
            words += ["--memory", budget]
        result = bench.sgtc(*words, "--emit", f"plan-json={bench.path('plan.json')}")
        assert result.returncode == 0, f"--{option} {value}: {result.stderr}"


def test_another_schedule_would_fit(bench):
    bench.model(*GPT)
    options = ("--mesh", "2x1", "--micro-batches", 8, "--recompute", "none")
    plan = f"plan-json={bench.path('plan.json')}"
    bench.sgtc("model.onnx", *options, "--schedule", "1f1b", "--emit", plan)
    budget = max(arenas(bench))
    result = bench.sgtc("model.onnx", *options, "--schedule", "gpipe", "--memory", budget, "--emit",
                        plan)
    assert result.returncode == 1, result.stderr
    expect_text(result, "\n  --schedule 1f1b: ", "\n  --recompute auto: ")


def test_explanations(bench):
    bench.model(*GPT)
    plan = bench.path("plan.json")
    result = bench.sgtc("model.onnx", "--recompute", "full", "--mesh", "2x1", "--emit",
                        f"plan-json={plan}")
    assert result.returncode == 0, result.stderr
    explained = bench.sgtc("explain", plan, "h.0.attn.c_attn.matmul")
    assert explained.returncode == 0, explained.stderr
    for words in ("pp=2", "position 0 of 2", "cut where the slowest stage is fastest",
                  "forward call", "backward call", "matmul kernel", "computed again, needed from",
                  "of the arena of"):
        assert words in explained.stdout, explained.stdout
    assert "position 1 of 2" not in explained.stdout
    kept = bench.sgtc("explain", plan, "wte.weight").stdout
    assert "parameter, there all along" in kept, kept
    unknown = bench.sgtc("explain", plan, "h.0.mlp.C_FC")
    assert unknown.returncode == 1
    expect_text(unknown, "no kernel of a node and no tensor of that name; it has h.0.mlp.c_fc")
    assert bench.sgtc("explain", plan).returncode == 2
    wrong = bench.sgtc("explain", "model.onnx", "h.0")
    assert wrong.returncode == 1
    expect_text(wrong, "a list of plans in JSON is expected")


def test_wrong_sizes(bench):
    for size in ("12parsecs", "0", "-1GiB", "GiB"):
        result = bench.sgtc("model.onnx", f"--memory={size}")
        assert result.returncode == 2, result.stderr
        expect_text(result, "expected a number of bytes", size)


if __name__ == "__main__":
    run_tests(dict(globals()), sys.argv[1:])
