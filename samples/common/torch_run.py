"""What the comparisons with PyTorch share: weights, rows, training and loss curves."""

import json

import numpy as np
import torch


def read_safetensors(path):
    """The tensors of a file by name; all are of f32."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", (name, entry["dtype"])
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + begin:8 + length + end], "<f4")
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]).copy())
    return tensors


def windows(path, seq):
    """The rows that `--tokens X,Y=path` gives: inputs, and the same shifted by one."""
    tokens = torch.from_numpy(np.fromfile(path, "<u2").astype(np.int64))
    count = (len(tokens) - 1) // seq
    return tokens[:count * seq].view(count, seq), tokens[1:count * seq + 1].view(count, seq)


def train(loss_of, parameters, rows, batch, steps, lr, clip_norm=0.0, **adamw):
    """Losses of AdamW over the rows in order, one batch per step."""
    parameters = list(parameters)
    optimizer = torch.optim.AdamW(parameters, lr=lr, **adamw)
    losses = []
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        loss = loss_of(rows[0][part], rows[1][part])
        optimizer.zero_grad()
        loss.backward()
        if clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def logged(path, key="loss"):
    with open(path) as log:
        return [record[key] for record in map(json.loads, log) if key in record]


def compare(found, expected, tolerance):
    """Prints both curves and fails when a loss differs by more than `tolerance`, relatively."""
    assert len(found) == len(expected), (len(found), len(expected))
    worst = 0.0
    for step, (ours, theirs) in enumerate(zip(found, expected), 1):
        worst = max(worst, abs(ours - theirs) / abs(theirs))
        if step == 1 or step % max(1, len(found) // 10) == 0:
            print(f"step {step:4d} | sgtc {ours:.6f} | PyTorch {theirs:.6f}")
    print(f"largest relative difference of a loss: {worst:.1e}")
    if worst > tolerance:
        raise SystemExit(f"the losses differ by more than {tolerance:.0e}")
