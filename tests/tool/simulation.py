"""Predictions: presets, profiles, reports and timelines.

simulation.py [TEST...]
"""

import json
import re
import sys

import numpy as np

from harness import build, expect_text, floats, run_tests

RNG = np.random.default_rng(0)
ROWS = 32
TENSORS = {f"w{i}": floats(RNG.normal(size=(16, 16)) * 0.2) for i in range(4)}
FEEDS = {"X": floats(RNG.normal(size=(ROWS, 16)))}


def layers():
    nodes = "H = MatMul(X, w0) "
    for i in range(1, 4):
        nodes += f"T{i} = Tanh({'H' if i == 1 else f'M{i - 1}'}) M{i} = MatMul(T{i}, w{i}) "
    return build(nodes + "S = Mul(M3, M3) L = ReduceMean<keepdims=0>(S)", TENSORS,
                 inputs="float[4,16] X")


def step_of(text):
    return re.search(r"^  step +(.*)$", text, re.MULTILINE).group(1)


def test_a_report_needs_no_executable(bench):
    bench.write_model(layers())
    result = bench.sgtc("model.onnx", "--mesh", "2x2", "--micro-batches", "2", "--simulate")
    assert result.returncode == 0, result.stderr
    for words in ("simulation of train on cpu", "pp=2,dp=2,tp=1 (4 ranks, 2 simulated)", "bubble"):
        assert words in result.stdout, result.stdout
    assert not bench.path("train").exists()


def test_a_timeline_is_written(bench):
    bench.write_model(layers())
    result = bench.sgtc("model.onnx", "--mesh", "2x1", "--simulate=step.json")
    assert result.returncode == 0, result.stderr
    events = json.loads(bench.path("step.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    assert any(event["name"] == "forward" and event["ph"] == "X" for event in events)
    result = bench.sgtc("model.onnx", "--mesh", "2x1,1x1", "--simulate=step.json")
    assert result.returncode == 1
    expect_text(result, "a timeline is of one plan, found 2")


def test_gpus_are_predicted_without_one(bench):
    bench.write_model(layers())
    steps = set()
    for hardware in ("h100", "h200"):
        result = bench.sgtc("model.onnx", "--target", "sm_90a", "--mesh", "1x2", "--simulate",
                            "--hardware", hardware)
        assert result.returncode == 0, result.stderr
        assert f"on {hardware} (132 multiprocessors, 8 ranks per host)" in result.stdout
        steps.add(step_of(result.stdout))
    result = bench.sgtc("model.onnx", "--simulate", "--hardware", "h200")
    assert result.returncode == 1
    expect_text(result, "--hardware h200: expected a CPU for --target cpu, found a GPU")


def test_bad_profiles_are_refused(bench):
    bench.write_model(layers())
    result = bench.sgtc("model.onnx", "--simulate", "--hardware", "nowhere.json")
    assert result.returncode == 1
    expect_text(result, "--hardware nowhere.json", "there is no such file")
    bench.path("p.json").write_text('{"format": "sgtc-hardware", "version": 1, "name": 3}')
    result = bench.sgtc("model.onnx", "--simulate", "--hardware", "p.json")
    assert result.returncode == 1
    expect_text(result, 'p.json: "name": expected a string, found 3')


def test_a_calibrated_program_is_predicted_and_says_so(bench):
    for mesh in ("1x1", "2x2"):
        bench.compile(layers(), "--mesh", mesh, "--micro-batches", "2")
        result = bench.start("--calibrate", "profile.json", feeds=FEEDS)
        assert result.returncode == 0, result.stderr
        profile = json.loads(bench.path("profile.json").read_text())
        plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
        called = {call["kernel"] for position in plan["positions"]
                  for task in position["tasks"] for call in task["calls"]}
        evaluated = called - set(profile["kernels"])
        assert len(profile["kernels"]) > 3 and len(evaluated) < len(called)
        kinds = {each["kind"] for each in profile["communications"]}
        assert kinds == (set() if mesh == "1x1" else {"send", "all_reduce"}), kinds
        bench.compile(layers(), "--mesh", mesh, "--micro-batches", "2", "--hardware",
                      "profile.json")
        plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
        assert plan["prediction"]["step_seconds"] > 0
        result = bench.run("./train", "--threads", "1", "--data", "X=X.npy", "--steps", "3")
        assert result.returncode == 0, result.stderr
        assert re.search(r"a step: predicted [0-9.]+ ms, measured [0-9.]+ ms \(median of 2\)",
                         result.stdout), result.stdout


run_tests(globals(), sys.argv[1:])
