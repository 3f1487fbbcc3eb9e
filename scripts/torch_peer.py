"""Trains a model of sgtc-model in PyTorch on the CPU, some steps whenever asked.

    torch_peer.py MODEL FEED... --lr X --threads N [--compile]

MODEL is the command of sgtc-model as a JSON list. The weights are those of initial.safetensors,
the rows those of FEED.npy, in order and again. For each line on standard input, a number of steps,
it prints a line of JSON: losses, milliseconds of the steps, and the most memory that the process
had resident, now and before it read the weights, in MiB.
"""

import argparse
import json
import pathlib
import resource
import sys
import time

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests/gpu"), str(ROOT / "samples/common")]

import torch_models  # noqa: E402
import torch_run  # noqa: E402


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def read_weights():
    """Weights by name; running statistics need no gradient. Convolutions are channels-last."""
    weights = torch_run.read_safetensors(pathlib.Path("initial.safetensors"))
    for name, weight in weights.items():
        if weight.dim() == 4:
            weights[name] = weight.contiguous(memory_format=torch.channels_last)
        weights[name].requires_grad_(".running_" not in name)
    return weights


class Trainer:
    def __init__(self, command, feeds, lr, compiled):
        options = dict(zip(command[1::2], command[2::2]))
        self.batch = int(options["--batch"])
        self.feeds = {name: torch.from_numpy(np.load(name + ".npy")) for name in feeds}
        self.weights = read_weights()
        trained = [weight for weight in self.weights.values() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)
        self.loss_of = torch_models.loss_of(command[0], options)
        if compiled:
            self.loss_of = torch.compile(self.loss_of)
        self.done = 0

    def rows(self):
        """The next rows of all feeds."""
        steps = len(next(iter(self.feeds.values()))) // self.batch
        begin = self.done % steps * self.batch
        self.done += 1
        return {name: rows[begin:begin + self.batch] for name, rows in self.feeds.items()}

    def step(self):
        loss = self.loss_of(self.weights, self.rows())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=json.loads)
    parser.add_argument("feeds", nargs="+")
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    idle = peak()
    trainer = Trainer(options.model, options.feeds, options.lr, options.compile)
    for line in sys.stdin:
        marks, losses = [time.perf_counter()], []
        for _ in range(int(line)):
            losses.append(trainer.step())
            marks.append(time.perf_counter())
        ms = [1000 * (b - a) for a, b in zip(marks, marks[1:])]
        print(json.dumps({"losses": losses, "ms": ms, "peak": peak(), "idle": idle}), flush=True)


if __name__ == "__main__":
    main()
