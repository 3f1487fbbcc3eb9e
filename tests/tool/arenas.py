"""Every family of models of sgtc-model: on no mesh is an arena more than 5% larger than the largest
live set, and a run touches all of it and nothing else. The peak that a plan's text prints is that of a
run: at most the largest live set, and at least what is live when entries run one after the other.

arenas.py [TEST...]
"""

import json
import os
import re
import sys

import numpy as np

from harness import floats, integers, run_tests
from live_set import arena_ratios, largest_live_sets, serial_peak
from touched_lines import compare_touched, touched_lines

MOST = 1.05
MESHES = ("1x1", "2x1", "1x2", "2x2", "4x1")
RNG = np.random.default_rng(3)

# Of each family options that make it small. A value of a layer is large beside the 64 bytes to which
# buffers are aligned.
TEXT = ("--layers", 4, "--width", 64, "--heads", 2, "--vocab", 128, "--seq", 32, "--batch", 2)
SMALL = {
    "mlp": ("--inputs", 64, "--hidden", "256,192,160,128", "--classes", 32, "--batch", 32),
    "cnn": ("--channels", 2, "--size", 16, "--widths", "8,12,16", "--classes", 7, "--batch", 8),
    "resnet": ("--blocks", "1,1,1", "--width", 8, "--size", 32, "--classes", 512, "--batch", 4),
    "gpt2": (*TEXT, "--context", 32, "--dropout", 0.1),
    "llama": (*TEXT, "--kv-heads", 1, "--hidden", 96),
    "bert": (*TEXT, "--context", 32, "--hidden", 96),
    "vit": ("--layers", 4, "--width", 64, "--heads", 2, "--hidden", 96, "--patch", 4, "--size", 32,
            "--classes", 7, "--batch", 2),
}


def families(bench):
    text = bench.run(os.environ["SGTC_MODEL"], "--help").stdout
    names = re.findall(r"^  ([a-z0-9.-]+) +\S", text.split("ubcommands:")[1], re.MULTILINE)
    return {re.match(r"[a-z]+2?", name.split("-")[0]).group() for name in names}


def expect_printed_peaks(text, plan, largest, what):
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    printed = re.findall(r"peak of live buffers in train ([0-9.]+) (\w+),", text)
    assert len(printed) == len(plan["positions"]), f"{what}: {text}"
    for position, sets, (number, unit) in zip(plan["positions"], largest, printed):
        peak, rounding = float(number) * units[unit], 0.051 * units[unit]
        least, most = serial_peak(plan, position, "train"), sets["train"]
        found = f"{what}: {number} {unit}, not between {least} and {most} bytes"
        assert least - rounding <= peak <= most + rounding, found


def expect_tight(bench, name, mesh, schedule="1f1b"):
    """Compares each position's arena with its largest live set in a step or an evaluation."""
    path = bench.path("plan.json")
    micro_batches = 1 if mesh == "1x1" else 6
    result = bench.sgtc("model.onnx", "--emit", f"plan-json={path}", "--emit-plan",
                        "--mesh", mesh, "--micro-batches", micro_batches, "--schedule", schedule)
    what = f"{name} on {mesh}, {schedule}"
    assert result.returncode == 0, f"{what}: {result.stderr}"
    plan = json.loads(path.read_text())[0]
    largest = largest_live_sets(plan)
    expect_printed_peaks(result.stdout, plan, largest, what)
    ratios = arena_ratios(plan, largest)
    print(f"     {what}:", *(f"{ratio:.4f}" for ratio in ratios), flush=True)
    return [f"{what}: {ratio:.4f}" for ratio in ratios if not 1 <= ratio <= MOST]


def test_all_families_are_here(bench):
    assert families(bench) == set(SMALL)


def test_arenas_are_hardly_larger_than_what_is_live(bench):
    loose = []
    for name, options in SMALL.items():
        bench.model(name, *options)
        for mesh in MESHES:
            loose += expect_tight(bench, name, mesh)
        loose += expect_tight(bench, name, "4x1", "gpipe")
    assert not loose, loose


def scopes_of(position):
    return {buffer["name"]: buffer["scope"] for buffer in position["buffers"]}


def positions_on_four_stages(bench, name):
    bench.model(name)
    loose = expect_tight(bench, name, "4x1")
    assert not loose, loose
    return json.loads(bench.path("plan.json").read_text())[0]["positions"]


def test_sent_gradients_lie_in_frames(bench):
    position = positions_on_four_stages(bench, "mlp")[2]
    scopes = scopes_of(position)
    sent = next(task for task in position["tasks"] if task["name"] == "send_backward")["inputs"]
    names = [each if isinstance(each, str) else each["buffer"] for each in sent]
    assert [scopes[name] for name in names] == ["slot"], scopes


def test_gradients_of_max_pools_lie_in_frames(bench):
    scopes = scopes_of(positions_on_four_stages(bench, "resnet18")[0])
    assert scopes["max_pool_grad"] == "slot", scopes


def feeds_of(plan):
    """Random rows of a step for each input; integers small enough for any table."""
    rows = plan["micro_batches"] * plan["mesh"][1]["size"]
    feeds = {}
    for feed in plan["feeds"]:
        shape = (feed["shape"][0] * rows, *feed["shape"][1:])
        integer = feed["dtype"].startswith("i")
        feeds[feed["name"]] = (integers(RNG.integers(0, 2, shape)) if integer else
                               floats(RNG.normal(size=shape)))
    return feeds


def expect_touched(bench, name, mesh, schedule="1f1b"):
    """Every rank changes what lies in its plan's buffers, and no byte beside them."""
    bench.compile(None, "--mesh", mesh, "--micro-batches", 1 if mesh == "1x1" else 3,
                  "--schedule", schedule, "--optimizer", "adamw", "--clip-norm", 1)
    plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
    feeds = feeds_of(plan)
    held_out = [word for each in feeds for word in ("--eval", f"{each}={each}.npy")]
    result = bench.start("--steps", 1, *held_out, feeds=feeds,
                         env={**os.environ, "SGTC_POISON": "1"})
    assert result.returncode == 0, f"{name} on {mesh}: {result.stderr}"
    touched = touched_lines(result.stdout)
    positions = [position for position in plan["positions"] for _ in range(plan["mesh"][1]["size"])]
    assert len(touched) == len(positions), f"{name} on {mesh}: {result.stdout}"
    for position, of_rank in zip(positions, touched):
        equal, found = compare_touched(position, of_rank)
        assert equal, f"{name} on {mesh}, {schedule}: {found}"


def test_runs_touch_what_was_planned(bench):
    for name, options in SMALL.items():
        bench.model(name, *options)
        for mesh in MESHES:
            expect_touched(bench, name, mesh)
        expect_touched(bench, name, "4x1", "gpipe")


def lies_before_frames(position):
    """Whether a buffer begins in front of the first frame, and so in the one before in the others."""
    frames = [buffer for buffer in position["buffers"]
              if buffer["scope"] == "slot" and buffer.get("count", 1) > 1]
    if not frames:
        return False
    begin = max(buffer["offset"] + buffer["bytes"] for buffer in frames) - frames[0]["stride"]
    return any(buffer["offset"] < begin for buffer in frames)


def test_frames_before_hold_what_is_sent(bench):
    bench.model("cnn", *SMALL["cnn"])
    runs, feeds = [], None
    for schedule in ("1f1b", "gpipe"):
        bench.compile(None, "--mesh", "4x1", "--micro-batches", 6, "--schedule", schedule)
        plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
        uses = [lies_before_frames(position) for position in plan["positions"]]
        assert any(uses) == (schedule == "gpipe"), f"{schedule}: {uses}"
        feeds = feeds or feeds_of(plan)
        runs.append(bench.train(feeds=feeds, steps=4, rate=0.1))
    (losses, weights), (other_losses, other_weights) = runs
    assert losses == other_losses and len(set(losses)) > 1, runs
    for name, values in weights.items():
        assert values.tobytes() == other_weights[name].tobytes(), name


if __name__ == "__main__":
    run_tests(dict(globals()), sys.argv[1:])
