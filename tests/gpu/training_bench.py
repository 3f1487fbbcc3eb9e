"""Times a training step of GPT-2: a program of sgtc beside PyTorch, taking turns on one GPU.

    training_bench.py PROGRAM TOKENS --vocab N [--batch 32 --seq 1024 --layers 12 --width 768 …]

PROGRAM was compiled for that size with AdamW and --precision bf16, TOKENS is a token stream.
PyTorch trains the same model, compiled by torch.compile, in autocast, with fused AdamW. Per round
each takes its steps while the other waits; figures are medians of steps, after --warmup ones.
The first step is counted from the start of the process. Needs torch and numpy.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

START = time.perf_counter()

import torch  # noqa: E402

import torch_models  # noqa: E402


class Peer:
    """GPT-2 in PyTorch: weights, optimizer and one batch."""

    def __init__(self, a):
        shapes = {"wte.weight": (a.vocab, a.width), "wpe.weight": (a.seq, a.width)}
        for i in range(a.layers):
            for name, inputs, outputs in (("attn.c_attn", 1, 3), ("attn.c_proj", 1, 1),
                                          ("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)):
                shapes[f"h.{i}.{name}.weight"] = (inputs * a.width, outputs * a.width)
                shapes[f"h.{i}.{name}.bias"] = (outputs * a.width,)
            for norm in ("ln_1", "ln_2"):
                shapes |= {f"h.{i}.{norm}.{part}": (a.width,) for part in ("weight", "bias")}
        shapes |= {f"ln_f.{part}": (a.width,) for part in ("weight", "bias")}
        self.weights = {name: self.initial(name, shape) for name, shape in shapes.items()}
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=a.lr, fused=True,
                                           weight_decay=a.weight_decay)
        ids = torch.randint(a.vocab, (a.batch, a.seq + 1), device="cuda")
        self.feeds = {"input_ids": ids[:, :-1].contiguous(), "labels": ids[:, 1:].contiguous()}
        self.loss_of = torch.compile(lambda w, f: torch_models.gpt2(w, f, heads=a.heads))

    @staticmethod
    def initial(name, shape):
        if len(shape) == 2:
            return (0.02 * torch.randn(shape, device="cuda")).requires_grad_()
        value = 1.0 if name.endswith("weight") else 0.0
        return torch.full(shape, value, device="cuda").requires_grad_()

    def step(self):
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.loss_of(self.weights, self.feeds)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def milliseconds(self, steps):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        marks[0].record()
        for mark in marks[1:]:
            self.step()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def run_program(a, work):
    """Milliseconds of its steps, seconds to its first, its summary, and its last loss."""
    log = pathlib.Path(work) / "log.jsonl"
    log.unlink(missing_ok=True)
    start, first = time.perf_counter(), None
    process = subprocess.Popen(
        [a.program, "--tokens", f"input_ids,labels={a.tokens}", "--steps",
         str(a.warmup + a.steps), "--lr", str(a.lr), "--log", log],
        stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        if first is None and line.startswith("step 1/"):
            first = time.perf_counter() - start
        lines.append(line.rstrip())
    if process.wait() != 0:
        raise SystemExit(f"{a.program}: exit {process.returncode}")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [r for r in records if "ms" in r]
    return [r["ms"] for r in steps[a.warmup:]], first, lines, steps[-1]["loss"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("tokens")
    for option, value in {"--vocab": 50304, "--batch": 32, "--seq": 1024, "--layers": 12,
                          "--width": 768, "--heads": 12, "--steps": 30, "--warmup": 10,
                          "--rounds": 3}.items():
        parser.add_argument(option, type=int, default=value)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    return parser.parse_args()


def report(name, milliseconds, rows, seconds, gibibytes):
    median = statistics.median(milliseconds)
    print(f"{name:8} {median:8.2f} ms  {rows / median * 1e3:10,.0f} tokens/s  first step "
          f"{seconds:5.1f} s  {gibibytes}", flush=True)
    return median


def main():
    a = parse()
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    peer = Peer(a)
    peer.step()
    torch.cuda.synchronize()
    torch_first = time.perf_counter() - START
    peer.milliseconds(a.warmup)
    ours, theirs, summary = [], [], ""
    with tempfile.TemporaryDirectory() as work:
        for i in range(a.rounds):
            times, first, lines, loss = run_program(a, work)
            ours += times
            summary = summary or next(line for line in lines if "peak" in line)
            if i == 0:
                our_first = first
            theirs += peer.milliseconds(a.steps)
    tokens = a.batch * a.seq
    print(f"GPT-2 {a.layers} x {a.width}, {a.batch} x {a.seq} tokens, vocabulary {a.vocab}, "
          f"{a.rounds} rounds of {a.steps} steps, torch {torch.__version__}")
    peak = f"peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB"
    mine = report("sgtc", ours, tokens, our_first, summary[summary.index("peak"):])
    other = report("PyTorch", theirs, tokens, torch_first, peak)
    print(f"sgtc / PyTorch: {other / mine:.3f} of its tokens/s; last loss {loss:.4f}")


if __name__ == "__main__":
    main()
