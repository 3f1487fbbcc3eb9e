"""Trains the sample's GPT in PyTorch from the same weights on the same rows and compares.

    compare_torch.py [STEPS]

Run run.sh first. The executable trains once more, on rows in order; PyTorch starts from the weights
that it saves before the first step. Prints both loss curves, both held-out losses and the median
time of a step; fails when a loss differs by more than 0.1 % or the held-out ones by more than 1 %.
Needs torch; PyTorch uses as many threads as the executable.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "samples" / "common"))

import torch_run  # noqa: E402

WORK = ROOT / "build" / "samples" / "byte-gpt"
LR = 1e-3


def run_executable(steps):
    """Returns the weights before the first step and the log of the run."""
    tokens = ["--tokens", f"input_ids,labels={WORK / 'train.bin'}", "--quiet", "--lr", str(LR)]
    weights, log = WORK / "initial.safetensors", WORK / "compare.jsonl"
    log.unlink(missing_ok=True)
    subprocess.run([WORK / "train", *tokens, "--steps", "0", "--save", weights], check=True)
    held_out = ["--eval", f"input_ids,labels={WORK / 'held_out.bin'}"]
    subprocess.run([WORK / "train", *tokens, *held_out, "--steps", str(steps), "--log", log],
                   check=True)
    return torch_run.read_safetensors(weights), log


def gpt_loss(w, heads, input_ids, labels):
    """GPT-2 with its published weight names."""
    functional = torch.nn.functional

    def norm(name, x):
        return functional.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"])

    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    batch, seq = input_ids.shape
    x = w["wte.weight"][input_ids] + w["wpe.weight"][:seq]
    layer = 0
    while f"h.{layer}.ln_1.weight" in w:
        h = f"h.{layer}"
        parts = linear(h + ".attn.c_attn", norm(h + ".ln_1", x)).chunk(3, -1)
        q, k, v = (p.view(batch, seq, heads, -1).transpose(1, 2) for p in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(h + ".attn.c_proj", mixed.transpose(1, 2).reshape(x.shape))
        hidden = functional.gelu(linear(h + ".mlp.c_fc", norm(h + ".ln_2", x)), approximate="tanh")
        x = x + linear(h + ".mlp.c_proj", hidden)
        layer += 1
    logits = norm("ln_f", x) @ w["wte.weight"].T
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def held_out_loss(weights, sizes):
    """The mean over the whole batches of the held-out rows, as the executable evaluates them."""
    inputs, labels = torch_run.windows(WORK / "held_out.bin", sizes["seq"])
    batch = sizes["batch"]
    with torch.no_grad():
        losses = [gpt_loss(weights, sizes["heads"], inputs[i:i + batch], labels[i:i + batch]).item()
                  for i in range(0, len(inputs) // batch * batch, batch)]
    return statistics.mean(losses)


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    sizes = json.loads((WORK / "sizes.json").read_text())
    weights, log = run_executable(steps)
    for weight in weights.values():
        weight.requires_grad_(True)

    times = []

    def loss_of(input_ids, labels):
        times.append(time.perf_counter())
        return gpt_loss(weights, sizes["heads"], input_ids, labels)

    rows = torch_run.windows(WORK / "train.bin", sizes["seq"])
    expected = torch_run.train(loss_of, weights.values(), rows, sizes["batch"], steps, LR,
                               clip_norm=1.0, betas=(0.9, 0.99), weight_decay=0.1)
    ours = statistics.median(torch_run.logged(log, "ms"))
    theirs = 1000 * statistics.median(b - a for a, b in zip(times, times[1:]))
    print(f"median step: sgtc {ours:.1f} ms, PyTorch {torch.__version__} {theirs:.1f} ms "
          f"({torch.get_num_threads()} threads)")
    torch_run.compare(torch_run.logged(log), expected, tolerance=1e-3)
    found, wanted = torch_run.logged(log, "eval_loss")[-1], held_out_loss(weights, sizes)
    print(f"held out after {steps} steps: sgtc {found:.6f}, PyTorch {wanted:.6f}")
    if abs(found - wanted) > 0.01 * wanted:
        raise SystemExit("the held-out losses differ by more than 1 %")


if __name__ == "__main__":
    main()
