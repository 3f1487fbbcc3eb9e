"""Models that are trained on several meshes, with data for them, and runs of them."""

import json

import numpy as np

BATCH, VOCABULARY, LENGTH, CLASSES = 2, 50, 12, 10


def write_gpt2(bench, dropout=0.1, layers=4, vocabulary=VOCABULARY):
    """Tied embeddings: the first and the last stage of a pipeline hold copies of one parameter."""
    bench.model("gpt2", "--batch", BATCH, "--layers", layers, "--width", 32, "--heads", 2,
                "--vocab", vocabulary, "--seq", LENGTH, "--dropout", dropout)


def gpt2_data(samples=32):
    random = np.random.default_rng(7)
    ids = random.integers(0, VOCABULARY, (samples, LENGTH))
    return {"input_ids": ids, "labels": (ids * 7 + 3) % VOCABULARY}


def write_cnn(bench):
    """BatchNormalization: running statistics that every micro-batch moves."""
    bench.model("cnn", "--batch", BATCH, "--widths", "8,12,16", "--size", 8)


def cnn_data(samples=32):
    random = np.random.default_rng(8)
    labels = random.integers(0, CLASSES, samples)
    images = random.normal(size=(samples, 1, 8, 8)) + labels[:, None, None, None] / 5
    return {"x": images.astype(np.float32), "labels": labels}


class Run:
    """One finished run: exit code, messages, log records and the bytes of the saved weights."""

    def __init__(self, bench, result, log, weights):
        self.code, self.stdout, self.stderr = result.returncode, result.stdout, result.stderr
        lines = log.read_text().splitlines() if log.exists() else []
        self.records = [json.loads(line) for line in lines]
        self.steps = [record for record in self.records if "loss" in record]
        self.evaluations = [r["eval_loss"] for r in self.records if "eval_loss" in r]
        self.weights = weights.read_bytes() if weights.exists() else b""
        self.file = weights
        del bench

    def column(self, name):
        return [record[name] for record in self.steps]

    def bits(self):
        """All that must not depend on how the work was split."""
        return self.column("loss"), self.column("grad_norm"), self.weights


def train(bench, mesh, feeds, *arguments, steps=4, program="train", code=0, threads=1, **options):
    """Trains on a mesh that `program` was compiled for."""
    log = bench.path(f"{program}-{mesh}.jsonl")
    weights = bench.path(f"{program}-{mesh}.safetensors")
    for path in (log, weights):
        path.unlink(missing_ok=True)
    result = bench.start("--mesh", mesh, "--steps", steps, "--lr", "0.01", "--threads", threads,
                         "--log", log, "--save", weights, *arguments, feeds=feeds,
                         program=program, **options)
    assert result.returncode == code, f"{mesh}: exit {result.returncode}: {result.stderr}"
    return Run(bench, result, log, weights)
