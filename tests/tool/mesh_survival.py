"""A job survives whatever happens to one of its ranks, in the sense that it ends and goes on.

mesh_survival.py [ROUNDS]

In each round a random rank is killed or stopped at a random moment of a run that saves often. The job
must end by itself within seconds, naming the rank, and resume; the run that is pieced together has
the weights of an undisturbed one, bit for bit.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from harness import Bench
from mesh_models import gpt2_data, write_gpt2

STEPS, RANKS = 1500, 4
LIMIT = {signal.SIGKILL: 4, signal.SIGSTOP: 10}  # seconds until all have gone, on a busy machine


def children_of(process):
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def command(bench, checkpoint, *arguments):
    data = [f"--data={name}={bench.path(name)}.npy" for name in gpt2_data()]
    return [bench.path("train"), *data, "--shuffle", "--steps", str(STEPS), "--lr", "1e-3",
            "--threads", "1", "--checkpoint", checkpoint, "--save-every", "20", "--quiet",
            *arguments]


def start(bench, checkpoint, *arguments):
    return subprocess.Popen(command(bench, checkpoint, "--resume", "auto", *arguments),
                            cwd=bench.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def ranks_of(process):
    """Once all of them have started; nothing if the job ended before."""
    while process.poll() is None:
        ranks = children_of(process)
        if len(ranks) == RANKS:
            return ranks
        time.sleep(0.01)
    return []


def disturb(bench, number, dice):
    """One round; returns what happened, or None if the job was done before."""
    process = start(bench, "root")
    what = signal.SIGSTOP if number % 2 else signal.SIGKILL
    ranks = ranks_of(process)
    time.sleep(dice.uniform(0, 0.8))
    victim = dice.randrange(RANKS)
    if not ranks or process.poll() is not None:
        process.communicate()
        return None
    os.kill(ranks[victim], what)
    begin = time.monotonic()
    try:
        messages, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"round {number}: the job hangs after {what.name}") from error
    seconds = time.monotonic() - begin
    if process.returncode == 0:  # the victim had finished its part
        return None
    assert seconds < LIMIT[what], f"round {number}: {seconds:.1f} s after {what.name}"
    left = [pid for pid in ranks if pathlib.Path(f"/proc/{pid}").exists()]
    assert not left, f"round {number}: processes {left} are left"
    named = f"rank {victim} " in messages or "before" in messages
    assert named, f"round {number}: rank {victim} is not named in: {messages}"
    return f"{what.name} to rank {victim}: ended after {seconds:.1f} s, {process.returncode}"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    dice = random.Random(17)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        write_gpt2(bench)
        bench.compile(None, "--mesh", "2x2", "--micro-batches", "2", "--optimizer", "adamw",
                      "--clip-norm", "1")
        for name, values in gpt2_data().items():
            np.save(bench.path(f"{name}.npy"), values)
        whole = start(bench, "whole", "--save", "whole.safetensors")
        messages, _ = whole.communicate(timeout=300)
        assert whole.returncode == 0, messages
        disturbed = 0
        for number in range(rounds):
            told = disturb(bench, number, dice)
            if told is None:
                subprocess.run(["rm", "-rf", bench.path("root")], check=True)
                continue
            disturbed += 1
            print(f"ok   round {number}: {told}", flush=True)
        last = start(bench, "root", "--save", "last.safetensors")
        messages, _ = last.communicate(timeout=300)
        assert last.returncode == 0, messages
        same = bench.path("last.safetensors").read_bytes() == bench.path(
            "whole.safetensors").read_bytes()
        assert same, "the resumed run differs from the undisturbed one"
        assert disturbed >= rounds // 2, f"only {disturbed} of {rounds} rounds disturbed the job"
        print(f"ok   {disturbed} of {rounds} rounds; the weights are those of an undisturbed run")


if __name__ == "__main__":
    main()
