"""Pipelines over two Slurm nodes have the bits of one rank, replicas agree with it.

slurm_meshes.py, inside a cluster of two nodes (lib_slurm.sh)
"""

import json
import subprocess
import sys

import numpy as np

from harness import run_tests
from mesh_models import cnn_data, gpt2_data, train, write_cnn, write_gpt2

STEPS = 4


def srun(bench, mesh, feeds, threads):
    """A job step on both nodes; losses and the bytes of the weights."""
    pipeline, replicas = map(int, mesh.split("x"))
    log, weights = bench.path("srun.jsonl"), bench.path("srun.safetensors")
    log.unlink(missing_ok=True)
    data = []
    for name, values in feeds.items():
        np.save(bench.path(f"{name}.npy"), values)
        data.append(f"--data={name}={bench.path(name)}.npy")
    command = ["srun", "-N2", f"-n{pipeline * replicas}", bench.path("train"), "--mesh", mesh, *data,
               "--steps", str(STEPS), "--lr", "0.01", "--threads", str(threads), "--log", log,
               "--save", weights, "--checkpoint", bench.path(f"checkpoint-{mesh}-{threads}"),
               "--quiet"]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=120, check=False)
    assert result.returncode == 0, f"{mesh}: exit {result.returncode}: {result.stderr}"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [record["loss"] for record in records if "loss" in record], weights.read_bytes()


def compare(bench, feeds, options):
    bench.compile(None, "--mesh", "1x1,2x1,4x1", "--micro-batches", "4", *options)
    one = train(bench, "1x1", feeds, steps=STEPS)
    for mesh in ("2x1", "4x1"):
        for threads in (1, 2):
            losses, weights = srun(bench, mesh, feeds, threads)
            assert losses == one.column("loss"), mesh
            assert weights == one.weights, mesh
    bench.compile(None, "--mesh", "2x2", "--micro-batches", "2", *options)
    losses, _ = srun(bench, "2x2", feeds, 1)
    np.testing.assert_allclose(losses, one.column("loss"), rtol=1e-5)


def test_a_tied_transformer_with_dropout(bench):
    write_gpt2(bench)
    compare(bench, gpt2_data(), ["--optimizer", "adamw", "--clip-norm", "1"])


def test_a_network_with_batch_normalization(bench):
    write_cnn(bench)
    compare(bench, cnn_data(), ["--optimizer", "sgd", "--momentum", "0.9"])


if __name__ == "__main__":
    run_tests(globals(), sys.argv[1:])
