"""Runs what pack_meshes.py has packed on several GPUs of this host, beside one GPU.

mesh_check.py FOLDER   exit status 77: there are no Hopper GPUs

On a host with one GPU the ranks of pipelines share it, which needs no NCCL between them: this shows
that they compute the same and end well, but not how fast they are.
"""

import json
import math
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

STEPS = 30
# Of a loss, relative to values above 1: another number of replicas rounds otherwise.
TOLERANCE = {"gpt": 1e-2, "mlp": 1e-4, "cnn": 1e-4}  # the first is in bf16
PATIENCE = 120  # seconds for one run
SECONDS_TO_END = 20  # after a rank was lost
LOST = 200
SKIPPED = 77
RUNS = 10  # that have the same bits
DELAYED_STEPS = 1000
DELAYED_STEPS_ON_SHARED_GPU = 100  # where ranks wait for their turns
SHARED = {"SGTC_SHARE_GPU": "1", "CUDA_VISIBLE_DEVICES": "0"}

failures = 0


def expect(holds, what):
    global failures
    failures += not holds
    print("ok  " if holds else "FAIL", what, flush=True)
    return holds


def values(log, key):
    return [float(record[key]) for record in log if key in record]


def largest_difference(found, expected):
    if len(found) != len(expected) or not found or not all(map(math.isfinite, found)):
        return float("inf")
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, expected))


class Model:
    """A folder with the programs of one model: one for each mesh, named after it."""

    def __init__(self, folder):
        self.folder = folder
        self.arguments = json.loads((folder / "arguments.json").read_text())
        self.meshes = sorted(path.name for path in folder.iterdir()
                             if re.fullmatch(r"\d+x\d+", path.name))

    def command(self, mesh, *words):
        return [f"./{mesh}", "--quiet", *map(str, words), *self.arguments]

    def run(self, mesh, *words, **environment):
        try:
            return subprocess.run(self.command(mesh, *words), cwd=self.folder, capture_output=True,
                                  text=True, check=False, timeout=PATIENCE,
                                  env={**os.environ, **environment})
        except subprocess.TimeoutExpired as expired:
            text = [(part or b"").decode(errors="replace")[-2000:]
                    for part in (expired.stdout, expired.stderr)]
            return subprocess.CompletedProcess(expired.cmd, 124, *text)

    def train(self, mesh, *words, steps=STEPS, **environment):
        """What a run has logged, and the bytes that it leaves behind."""
        for name in ("log", "weights"):
            (self.folder / name).unlink(missing_ok=True)
        start = time.monotonic()
        result = self.run(mesh, "--steps", steps, "--lr", "1e-3", "--log", "log", "--save",
                          "weights", "--eval-every", 10, *words, **environment)
        seconds = time.monotonic() - start
        if not expect(result.returncode == 0,
                      f"{self.folder.name} {mesh} trains in {seconds:.1f} s {environment or ''}"):
            print(f"exit {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
            return [], b""
        log = [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]
        times = sorted(values(log, "ms"))
        losses = values(log, "loss")
        print(f"     step {times[len(times) // 2]:.3f} ms (median), loss {losses[0]:.5f} to "
              f"{losses[-1]:.5f}")
        return log, (self.folder / "weights").read_bytes()


def outcome(log, weights):
    return [values(log, key) for key in ("loss", "grad_norm", "eval_loss")], weights


def check_against_one(model, mesh, found, one):
    """Pipelines have the bits of one GPU, replicas its values to rounding."""
    name = f"{model.folder.name} {mesh}"
    for index, key in enumerate(("loss", "grad_norm", "eval_loss")):
        if not one[0][index]:
            continue
        difference = largest_difference(found[0][index], one[0][index])
        expect(difference <= TOLERANCE[model.folder.name],
               f"{name}: {key} differs from one GPU's by {difference:.2e}")
    if mesh.endswith("x1"):
        expect(found == one, f"{name}: the same bits as on one GPU")


def check_bits(model, mesh, expected, runs):
    name = f"{model.folder.name} {mesh}"
    for number in range(2, runs + 1):
        expect(outcome(*model.train(mesh)) == expected, f"{name}: run {number} has the same bits")
    expect(outcome(*model.train(mesh, SGTC_STEPWISE="1")) == expected,
           f"{name}: one launch at a time has the same bits")


def check_resume(model, mesh, expected):
    words = ("--checkpoint", f"checkpoint-{mesh}", "--resume", "auto")
    model.train(mesh, *words, steps=STEPS // 2)
    _, weights = model.train(mesh, *words)
    expect(weights == expected[1], f"{model.folder.name} {mesh}: a resumed run has the same bits")


def start_ranks(model, mesh, *words):
    """One process per rank, as a launcher would start them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    count = math.prod(map(int, mesh.split("x")))
    ranks = []
    for rank in range(count):
        variables = {"SGTC_RANK": str(rank), "SGTC_WORLD_SIZE": str(count), "SGTC_SECRET": "check",
                     "SGTC_MASTER": f"127.0.0.1:{port}"}
        ranks.append(subprocess.Popen(
            model.command(mesh, "--lr", "1e-3", "--log", "log", *words),
            cwd=model.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **variables}))
    return ranks


def is_running(model, ranks):
    """Until the log has some steps."""
    log = model.folder / "log"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and all(rank.poll() is None for rank in ranks):
        if log.exists() and log.read_text().count("\n") > 50:
            return True
        time.sleep(0.05)
    return False


def check_loss_of_rank(model, mesh, victim, number):
    """All others end with exit code 200, and soon, when one rank is killed or stopped."""
    name = f"{model.folder.name} {mesh}: {signal.Signals(number).name} to rank {victim}"
    (model.folder / "log").unlink(missing_ok=True)
    ranks = start_ranks(model, mesh, "--steps", 10**7)
    if expect(is_running(model, ranks), f"{name}: the job runs"):
        ranks[victim].send_signal(number)
    start = time.monotonic()
    for rank, process in enumerate(ranks):
        if rank == victim:
            continue
        try:
            text, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
        seconds = time.monotonic() - start
        good = process.returncode == LOST and seconds < SECONDS_TO_END
        expect(good and f"rank {victim} (host" in text,
               f"{name}: rank {rank} names it and ends after {seconds:.1f} s with "
               f"{process.returncode}")
        print("     " + "\n     ".join(text.strip().splitlines()[-4:]))
    ranks[victim].kill()
    ranks[victim].communicate()


def check_delays(model, mesh, steps):
    """A rank that is delayed at random changes nothing but the time."""
    name = f"{model.folder.name} {mesh}"
    log, weights = model.train(mesh, steps=steps)
    for path in ("log", "weights"):
        (model.folder / path).unlink(missing_ok=True)
    ranks = start_ranks(model, mesh, "--steps", steps, "--save", "weights", "--eval-every", 10)
    expect(is_running(model, ranks), f"{name}: the job runs")
    delays = 0
    deadline = time.monotonic() + PATIENCE
    while ranks[-1].poll() is None and time.monotonic() < deadline:
        ranks[-1].send_signal(signal.SIGSTOP)
        time.sleep(random.uniform(0, 0.05))
        ranks[-1].send_signal(signal.SIGCONT)
        time.sleep(random.uniform(0, 0.05))
        delays += 1
    for rank in ranks:
        try:
            rank.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.communicate()
    found = [json.loads(line) for line in (model.folder / "log").read_text().splitlines()]
    weights_path = model.folder / "weights"
    same = outcome(found, weights_path.read_bytes() if weights_path.exists() else b"")
    expect(same == outcome(log, weights),
           f"{name}: {steps} steps with {delays} delays have the same bits")


def check_trace(model, mesh):
    result = model.run(mesh, "--steps", 20, "--lr", "1e-3", "--trace", "trace.json")
    expect(result.returncode == 0, f"{model.folder.name} {mesh}: a traced run")
    if result.returncode != 0:
        return print(result.stderr[-2000:])
    print("\n".join("     " + line for line in result.stdout.splitlines()
                    if "communication:" in line))
    spent = {}
    for event in json.loads((model.folder / "trace.json").read_text())["traceEvents"]:
        if event.get("cat") == "communication" and event["pid"] == 0:
            spent.setdefault(event["name"], []).append(event["dur"])
    expect(spent, f"{model.folder.name} {mesh}: the trace has communications")
    for name, times in spent.items():
        print(f"     {name}: {len(times)} times, {min(times):.0f} us at least")


def check_losses(model):
    """The outcome of each mesh that trains, after comparison with one GPU."""
    print(model.run("1x1", "--dry-run").stdout.strip())
    one = outcome(*model.train("1x1"))
    found = {}
    for mesh in model.meshes:
        if mesh == "1x1":
            continue
        result = outcome(*model.train(mesh, SGTC_POISON="1", NCCL_DEBUG="WARN"))
        if result[1]:
            check_against_one(model, mesh, result, one)
            found[mesh] = result
    return found


def check(models, delayed_steps):
    """What says most comes first."""
    found = [(model, mesh, result) for model in models
             for mesh, result in check_losses(model).items()]
    for model, mesh, result in found:
        check_bits(model, mesh, result, RUNS if model is models[0] else 2)
    for mesh in models[0].meshes:
        if mesh != "1x1":
            check_delays(models[0], mesh, delayed_steps)
    for mesh, victim, number in (("1x2", 1, signal.SIGKILL), ("2x1", 0, signal.SIGKILL),
                                 ("1x2", 0, signal.SIGSTOP), ("2x1", 1, signal.SIGSTOP)):
        if mesh in models[0].meshes:
            check_loss_of_rank(models[0], mesh, victim, number)
    for model, mesh, result in found:
        check_trace(model, mesh)
        print(model.run(mesh, "--dry-run").stdout.strip())
        check_resume(model, mesh, result)


def main():
    folders = [pathlib.Path(sys.argv[1]) / name for name in TOLERANCE]
    found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    gpus = len(re.findall("^GPU ", found.stdout, re.MULTILINE))
    if gpus == 0:
        print("skipped: there is no GPU")
        sys.exit(SKIPPED)
    models = [Model(folder) for folder in folders]
    for model in models:
        ranks = {mesh: math.prod(map(int, mesh.split("x"))) for mesh in model.meshes}
        model.meshes = [mesh for mesh in model.meshes
                        if ranks[mesh] <= gpus or gpus == 1 and mesh.endswith("x1")]
    if gpus == 1:
        print("one GPU: the ranks of pipelines share it")
        os.environ.update(SHARED)
    check(models, DELAYED_STEPS_ON_SHARED_GPU if gpus == 1 else DELAYED_STEPS)
    print(f"{failures} failures")
    sys.exit(failures > 0)


main()
