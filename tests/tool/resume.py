"""Runs that were stopped, killed or resumed end with the bits of an uninterrupted run.

resume.py [TEST...]
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

from harness import expect_text, floats, read_safetensors, run_tests
from small_models import language_data, language_model

STEPS = 6
FEEDS = language_data(20, 0.3)  # 2.5 steps an epoch: resumes fall into the middle of epochs
OPTIONS = ["--shuffle", "--decay", "cosine", "--warmup", "2", "--seed", "3", "--lr", "0.01"]


def compile_model(bench):
    bench.compile(language_model(4, 0.1), "--optimizer", "adamw", "--clip-norm", "1",
                  "--micro-batches", "2")


def train(bench, steps, *arguments, code=0, **options):
    result = bench.start("--steps", steps, *OPTIONS, *arguments, feeds=FEEDS, **options)
    assert result.returncode == code, (result.returncode, result.stderr)
    return result


def uninterrupted(bench, steps=STEPS):
    train(bench, steps, "--save", "whole.safetensors")
    return bench.path("whole.safetensors").read_bytes()


def steps_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("step_"))


def test_every_step(bench):
    compile_model(bench)
    expected = uninterrupted(bench)
    train(bench, STEPS, "--checkpoint", "all", "--save-every", 1, "--keep", 100)
    assert len(steps_in(bench.path("all"))) == STEPS
    for folder in steps_in(bench.path("all"))[:-1]:
        train(bench, STEPS, "--resume", f"all/{folder}", "--save", "resumed.safetensors")
        assert bench.path("resumed.safetensors").read_bytes() == expected, folder


def test_one_step_at_a_time(bench):
    compile_model(bench)
    expected = uninterrupted(bench)
    for step in range(1, STEPS + 1):
        # The learning rate depends on the total: each run goes to the end and loses what is later.
        train(bench, STEPS, "--checkpoint", "root", "--resume", "auto", "--save-every", 1,
              "--keep", 100, "--save", "last.safetensors")
        for later in steps_in(bench.path("root"))[step:]:
            shutil.rmtree(bench.path("root") / later)
    assert bench.path("last.safetensors").read_bytes() == expected


def start(bench, *arguments):
    data = [f"--data={name}={bench.path(name)}.npy" for name in FEEDS]
    return subprocess.Popen([bench.path("train"), *data, "--quiet", *OPTIONS, *arguments],
                            cwd=bench.folder, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def test_killed_at_random_moments(bench):
    compile_model(bench)
    steps = 400
    expected = uninterrupted(bench, steps)
    moments = random.Random(29)
    killed = 0
    arguments = ["--steps", str(steps), "--checkpoint", "root", "--resume", "auto", "--save-every",
                 "1", "--save", "last.safetensors"]
    for _ in range(12):
        process = start(bench, *arguments)
        time.sleep(moments.uniform(0.02, 0.3))
        process.kill()
        _, errors = process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL), errors
    assert killed > 0
    train(bench, *arguments[1:])
    assert bench.path("last.safetensors").read_bytes() == expected
    left = [path.name for path in bench.path("root").iterdir()]
    assert not [name for name in left if name.startswith("tmp_")], left


def test_killed_at_every_write_of_a_checkpoint(bench):
    compile_model(bench)
    expected = uninterrupted(bench)
    for write in range(1, 40, 3):
        shutil.rmtree(bench.path("root"), ignore_errors=True)
        arguments = ["--checkpoint", "root", "--resume", "auto", "--save-every", 2]
        result = bench.start("--steps", STEPS, *OPTIONS, *arguments, feeds=FEEDS,
                             env={**os.environ, "SGTC_CRASH_AT": str(write)})
        assert result.returncode in (0, -signal.SIGKILL), result.stderr
        train(bench, STEPS, *arguments, "--save", "last.safetensors")
        assert bench.path("last.safetensors").read_bytes() == expected, write


def test_termination_commits_a_checkpoint(bench):
    compile_model(bench)
    train(bench, 0)  # writes the feeds
    for number in (signal.SIGTERM, signal.SIGINT):
        root = bench.path(f"root{int(number)}")
        process = start(bench, "--steps", "100000000", "--checkpoint", str(root), "--log", "log")
        deadline = time.monotonic() + 60
        while not bench.path("log").exists() or bench.path("log").stat().st_size == 0:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 143, (process.returncode, errors)
        steps = steps_in(root)
        assert len(steps) == 1, steps
        done = int(steps[0][5:])
        result = train(bench, done + 1, "--checkpoint", root, "--resume", "auto")
        assert f"resuming from {root}/{steps[0]}" in result.stdout, result.stdout
        bench.path("log").unlink()


def test_broken_checkpoints(bench):
    compile_model(bench)
    train(bench, 3, "--checkpoint", "root", "--save-every", 1)
    names = steps_in(bench.path("root"))
    assert len(names) == 2, names
    newest = bench.path("root") / names[1]
    data = newest.joinpath("model.safetensors").read_bytes()
    newest.joinpath("model.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    result = train(bench, 3, "--checkpoint", "copy", "--resume", "root")
    expect_text(result, "warning", names[1], "broken")
    (bench.path("root") / names[0] / "manifest.json").unlink()
    for option in (["--resume", "auto", "--checkpoint", "root"], ["--resume", "root"],
                   ["--resume", str(newest)]):
        result = train(bench, 4, *option, code=1)
        expect_text(result, "error", names[1])
    expect_text(train(bench, 4, "--resume", "auto", "--checkpoint", "root", code=1), *names)
    train(bench, 1, "--checkpoint", "fresh", "--resume", "auto")
    result = train(bench, 2, "--checkpoint", "fresh", code=1)
    expect_text(result, "fresh", "--resume auto")


def test_checkpoint_of_another_model(bench):
    compile_model(bench)
    train(bench, 1, "--checkpoint", "root")
    bench.compile(language_model(4, 0.1), "--optimizer", "sgd")
    expect_text(train(bench, 2, "--resume", "root", code=1), "another model", "fingerprint")


def test_checkpoints_are_readable(bench):
    compile_model(bench)
    train(bench, 2, "--checkpoint", "root", "--save", "last.safetensors")
    folder = bench.path("root") / steps_in(bench.path("root"))[0]
    model = read_safetensors(folder / "model.safetensors")
    last = read_safetensors(bench.path("last.safetensors"))
    assert sorted(model) == sorted(last) == ["head", "key", "mixer", "query", "scale", "shift",
                                             "table"]
    for name, value in model.items():
        assert value.tobytes() == last[name].tobytes() and value.dtype == floats([]).dtype
    moments = read_safetensors(folder / "optimizer.safetensors")
    for name in model:
        slots = [key for key in moments if name in key.replace("/", ".").split(".")]
        assert len(slots) == 2, (name, sorted(moments))
        assert all(moments[key].shape == model[name].shape for key in slots)


def test_log_goes_on(bench):
    compile_model(bench)
    train(bench, 3, "--checkpoint", "root", "--log", "log.jsonl")
    train(bench, 5, "--checkpoint", "root", "--log", "log.jsonl", "--resume", "auto")
    lines = bench.path("log.jsonl").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == [f'{{"step":{i}' for i in range(1, 6)]


run_tests(globals(), sys.argv[1:])
