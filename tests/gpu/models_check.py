"""Trains the programs of pack_models.py on a GPU and compares their losses with PyTorch's.

    models_check.py FOLDER [NAME...]

All begin with the same weights, which the program writes after 0 steps, and see the same data.
Checked for each model: the loss of fp32 against PyTorch's and the CPU program's in fp32; the loss of
bf16 against PyTorch's autocast, by what autocast itself changes; that the loss falls; that a second
run has the same bits; that the memory touched is the plan's, to the line; and no complaint of
compute-sanitizer where that is found and works. Needs torch and numpy. Exits with 1 if a check fails.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

import torch_models
from safetensors_file import read_safetensors
from touched_lines import compare_touched, touched_lines

FP32_TOLERANCE = 1e-3  # of a loss, PyTorch's and the CPU's
BF16_TOLERANCE = 2     # of the largest distance so far of autocast from PyTorch's fp32
LEAST_FALL = 0.1       # of the first loss
SANITIZED = "gpt2"     # the small model


class Run:
    """A packed model and what its programs write into a folder."""

    def __init__(self, folder, work):
        self.folder, self.work = folder, work
        self.settings = json.loads((folder / "run.json").read_text())
        self.feeds = {name: folder / f"{name}.npy" for name in self.settings["feeds"]}

    def command(self, program, steps, *more):
        data = [f"--data={name}={path}" for name, path in self.feeds.items()]
        return [self.folder / program, *data, "--quiet", "--steps", str(steps), "--lr",
                str(self.settings["lr"]), *more]

    def initial_weights(self):
        path = self.work / "initial.safetensors"
        subprocess.run(self.command("fp32", 0, "--save", path), check=True)
        return path

    def train(self, program, initial):
        """Losses and the bytes of the final weights."""
        log, weights = self.work / "log.jsonl", self.work / "weights.safetensors"
        log.unlink(missing_ok=True)
        subprocess.run(self.command(program, self.settings["steps"], "--init", initial, "--log",
                                    log, "--save", weights), check=True)
        records = [json.loads(line) for line in log.read_text().splitlines()]
        losses = np.array([float(r["loss"]) for r in records if "loss" in r])
        return losses, weights.read_bytes()


def torch_losses(run, initial, autocast):
    settings = run.settings
    weights = {name: torch.from_numpy(value.copy()).cuda().requires_grad_()
               for name, value in read_safetensors(initial).items()}
    feeds = {name: torch.from_numpy(np.load(path)).cuda() for name, path in run.feeds.items()}
    loss_of = torch_models.loss_of(settings["model"], settings["options"])
    optimizer = torch.optim.AdamW(weights.values(), lr=settings["lr"],
                                  betas=tuple(settings["betas"]), eps=settings["eps"],
                                  weight_decay=settings["weight_decay"], fused=True)
    losses = []
    for _ in range(settings["steps"]):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = loss_of(weights, feeds)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), settings["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


class Checks:
    def __init__(self):
        self.failed = 0

    def expect(self, good, text):
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)


def distance(a, b):
    return float(np.abs(a - b).max()) if a.shape == b.shape else np.inf


def check_model(run, name, checks):
    initial = run.initial_weights()
    torch_fp32, torch_bf16 = (torch_losses(run, initial, autocast) for autocast in (False, True))
    torch.cuda.empty_cache()
    cpu, _ = run.train("cpu", initial)
    found = {}
    for program in ("fp32", "bf16"):
        losses, weights = run.train(program, initial)
        again, same = run.train(program, initial)
        checks.expect(np.array_equal(losses, again) and weights == same,
                      f"{name} {program}: two runs have the same bits")
        fall = 1 - losses[-1] / losses[0]
        checks.expect(fall >= LEAST_FALL, f"{name} {program}: the loss falls from {losses[0]:.4f} "
                                          f"to {losses[-1]:.4f}, by {fall:.0%}")
        found[program] = losses
    for peer, losses in (("PyTorch's fp32", torch_fp32), ("the CPU program", cpu)):
        worst = distance(found["fp32"], losses)
        checks.expect(worst <= FP32_TOLERANCE, f"{name} fp32: at most {worst:.1e} from {peer}")
    allowed = BF16_TOLERANCE * np.maximum.accumulate(np.abs(torch_bf16 - torch_fp32))
    away = np.abs(found["bf16"] - torch_bf16)
    checks.expect(bool((away <= allowed).all()),
                  f"{name} bf16: at most {away.max():.1e} from autocast, "
                  f"{(away / allowed).max():.2f} of what is allowed")
    print(json.dumps({"model": name, "torch_fp32": torch_fp32.tolist(), "cpu": cpu.tolist(),
                      "torch_bf16": torch_bf16.tolist(),
                      **{key: losses.tolist() for key, losses in found.items()}}), flush=True)


def check_touched(run, name, checks):
    """A step and an evaluation touch all lines of the plan's buffers and nothing else."""
    held_out = [f"--eval={feed}={path}" for feed, path in run.feeds.items()]
    for program in ("fp32", "bf16"):
        plan = json.loads(subprocess.run([run.folder / program, "--print-plan"], check=True,
                                         capture_output=True, text=True).stdout)[0]
        result = subprocess.run(run.command(program, 1, *held_out), check=True, text=True,
                                capture_output=True, env={**os.environ, "SGTC_POISON": "1"})
        touched, = touched_lines(result.stdout)
        equal, found = compare_touched(plan["positions"][0], touched)
        checks.expect(equal, f"{name} {program}: {found}")


def check_memory(run, name, checks):
    """compute-sanitizer finds neither a bad access nor a race in two steps."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not pathlib.Path(tool).exists():
        print("compute-sanitizer was not found")
        return
    for program in ("fp32", "bf16"):
        for kind in ("memcheck", "racecheck", "initcheck", "synccheck"):
            result = subprocess.run([tool, "--tool", kind, "--error-exitcode", "99",
                                     *run.command(program, 2)], capture_output=True, text=True)
            text = result.stdout + result.stderr
            if "Device not supported" in text:
                print("compute-sanitizer does not work here")
                return
            checks.expect(result.returncode == 0, f"{name} {program}: {kind} finds nothing")
            if result.returncode != 0:
                print(text[-2000:], flush=True)


def check_accesses(run, name, checks):
    """The kernels of two steps touch what the plan says, and nothing else."""
    for program in ("fp32", "bf16"):
        result = subprocess.run(run.command(program, 2), capture_output=True, text=True,
                                env={**os.environ, "SGTC_CHECK_ACCESSES": "1"})
        checks.expect(result.returncode == 0,
                      f"{name} {program}: no kernel touches more than the plan says")
        print(result.stderr[-2000:], end="", flush=True)


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    folder = pathlib.Path(sys.argv[1])
    checks = Checks()
    for path in sorted(folder.iterdir()):
        if sys.argv[2:] and path.name not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory() as work:
            run = Run(path, pathlib.Path(work))
            try:
                check_model(run, path.name, checks)
                check_touched(run, path.name, checks)
                if path.name == SANITIZED:
                    check_accesses(run, path.name, checks)
                    check_memory(run, path.name, checks)
            except subprocess.CalledProcessError as error:
                checks.expect(False, f"{path.name}: {error}")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
