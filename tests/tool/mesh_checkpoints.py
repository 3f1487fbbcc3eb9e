"""Checkpoints of several ranks are complete, survive crashes, and go on with any mesh.

mesh_checkpoints.py [TEST...]
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np

from harness import expect_text, read_safetensors, run_tests
from mesh_models import gpt2_data, train, write_gpt2

FEEDS = gpt2_data()
STEPS = 5


def compile_meshes(bench, meshes=("1x1", "2x1", "4x1", "2x2"), micro_batches=2):
    write_gpt2(bench)
    bench.compile(None, "--mesh", ",".join(meshes), "--micro-batches", micro_batches,
                  "--optimizer", "adamw", "--clip-norm", "1")


def steps_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("step_"))


def run(bench, mesh, steps, *arguments, **options):
    return train(bench, mesh, FEEDS, "--shuffle", "--seed", 4, *arguments, steps=steps, **options)


def test_files_of_a_checkpoint(bench):
    compile_meshes(bench)
    saved = run(bench, "4x1", 2, "--checkpoint", "root")
    folder = bench.path("root/step_0000002")
    names = [path.name for path in folder.iterdir()]
    parts = [f"{kind}-0000{i}-of-00004.safetensors" for kind in ("model", "optimizer")
             for i in range(1, 5)]
    indices = ["model.safetensors.index.json", "optimizer.safetensors.index.json"]
    assert sorted(names) == sorted(parts + indices + ["state.json", "manifest.json"]), names
    manifest = json.loads((folder / "manifest.json").read_text())["files"]
    assert sorted(manifest) == sorted(set(names) - {"manifest.json"})
    for name, entry in manifest.items():
        data = (folder / name).read_bytes()
        assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    index = json.loads((folder / indices[0]).read_text())
    weights = read_safetensors(saved.file)
    assert sorted(index["weight_map"]) == sorted(weights)
    assert index["metadata"]["total_size"] == sum(value.nbytes for value in weights.values())
    for name, file in index["weight_map"].items():
        assert read_safetensors(folder / file)[name].tobytes() == weights[name].tobytes()


def test_resume_on_the_same_mesh_and_on_others(bench):
    compile_meshes(bench)
    whole = {mesh: run(bench, mesh, STEPS) for mesh in ("1x1", "2x2")}
    for mesh in ("2x2", "4x1", "1x1"):
        run(bench, mesh, 3, "--checkpoint", mesh)
    for before, after in (("2x2", "2x2"), ("4x1", "1x1"), ("1x1", "2x1"), ("2x2", "1x1"),
                          ("2x2", "4x1"), ("1x1", "2x2")):
        resumed = run(bench, after, STEPS, "--resume", before)
        assert f"resuming from {before}/step_0000003" in resumed.stdout
        assert [record["step"] for record in resumed.steps] == [4, 5]
        if before == after or "2x2" not in (before, after):
            expected = whole["2x2" if after == "2x2" else "1x1"]
            assert resumed.column("loss") == expected.column("loss")[3:], (before, after)
            assert resumed.weights == expected.weights, (before, after)


def test_replicas_that_share_moments_write_whole_ones(bench):
    write_gpt2(bench)
    options = ["--micro-batches", 2, "--optimizer", "adamw"]
    bench.compile(None, "--mesh", "1x2,2x2,1x4", *options, output="whole")
    bench.compile(None, "--mesh", "1x2,2x2,1x4", *options, "--shard", "optimizer", output="shared")
    for mesh in ("1x2", "2x2", "1x4"):
        expected = run(bench, mesh, STEPS, program="whole")
        run(bench, mesh, 3, "--checkpoint", f"whole-{mesh}", program="whole")
        run(bench, mesh, 3, "--checkpoint", f"shared-{mesh}", program="shared")
        folders = [bench.path(f"{kind}-{mesh}/step_0000003") for kind in ("whole", "shared")]
        files = [sorted(path.name for path in folder.iterdir()) for folder in folders]
        assert files[0] == files[1]
        for name in files[0]:
            if name.endswith(".safetensors"):
                assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
        manifest = json.loads((folders[1] / "manifest.json").read_text())["files"]
        for name, entry in manifest.items():
            data = (folders[1] / name).read_bytes()
            assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for before, after in (("shared", "shared"), ("shared", "whole"), ("whole", "shared")):
            resumed = run(bench, mesh, STEPS, "--resume", f"{before}-{mesh}", program=after)
            assert resumed.column("loss") == expected.column("loss")[3:], (mesh, before, after)
            assert resumed.weights == expected.weights, (mesh, before, after)


def test_initial_values_from_an_index(bench):
    compile_meshes(bench)
    saved = run(bench, "4x1", 2, "--checkpoint", "root")
    index = bench.path("root/step_0000002/model.safetensors.index.json")
    for mesh in ("1x1", "2x2"):
        assert run(bench, mesh, 0, "--init", index).weights == saved.weights


def test_broken_parts_are_noticed(bench):
    compile_meshes(bench)
    run(bench, "2x1", 2, "--checkpoint", "root", "--save-every", 1)
    part = bench.path("root/step_0000002/optimizer-00002-of-00002.safetensors")
    data = part.read_bytes()
    part.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    result = run(bench, "2x2", 3, "--resume", "root")
    expect_text(result, "warning", "step_0000002", "broken")
    assert result.stderr.count("warning") == 1
    assert "resuming from root/step_0000001" in result.stdout
    part.unlink()
    result = run(bench, "2x2", 3, "--resume", "root/step_0000002", code=1)
    expect_text(result, "error", part.name)


class Ranks:
    """Ranks that are started one by one, as a launcher would; `extra`: of each, what is its own."""

    def __init__(self, bench, count, *arguments, extra=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        data = [f"--data={name}={name}.npy" for name in FEEDS]
        common = {**os.environ, "SGTC_WORLD_SIZE": str(count), "SGTC_SECRET": "x" * 32,
                  "SGTC_MASTER": f"127.0.0.1:{port}"}
        command = [bench.path("train"), *data, "--lr", "0.01", "--threads", "1", "--shuffle",
                   "--seed", "4", *map(str, arguments)]
        self.processes = []
        for rank in range(count):
            own = {"cwd": bench.folder, "env": {}, **(extra or {}).get(rank, {})}
            own["env"] = {**common, "SGTC_RANK": str(rank), **own["env"]}
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True, **own))

    def wait(self):
        """Exit codes, once all have ended."""
        self.messages = [process.communicate(timeout=60)[1] for process in self.processes]
        return [process.returncode for process in self.processes]


def save_feeds(bench):
    for name, value in FEEDS.items():
        np.save(bench.path(f"{name}.npy"), value)


def test_killed_at_every_write_of_a_checkpoint(bench):
    compile_meshes(bench, ("2x1",))
    save_feeds(bench)
    expected = run(bench, "2x1", 4)
    run(bench, "2x1", 2, "--checkpoint", "start")
    for victim, writes in ((0, 17), (1, 6)):
        for write in range(1, writes):
            shutil.rmtree(bench.path("root"), ignore_errors=True)
            shutil.copytree(bench.path("start"), bench.path("root"))
            ranks = Ranks(bench, 2, "--steps", 4, "--checkpoint", "root", "--resume", "auto",
                          "--keep", 1, extra={victim: {"env": {"SGTC_CRASH_AT": str(write)}}})
            codes = ranks.wait()
            survivor = codes[1 - victim]
            crashed = codes[victim] == -signal.SIGKILL
            assert crashed or codes == [0, 0], (codes, ranks.messages)
            assert not crashed or survivor in (200, 0), (codes, ranks.messages)
            resumed = run(bench, "2x1", 4, "--checkpoint", "root", "--resume", "auto")
            assert resumed.weights == expected.weights, (victim, write)
            assert "warning" not in resumed.stderr, resumed.stderr
            left = [path.name for path in bench.path("root").iterdir()]
            assert left == ["step_0000004"] or not crashed or "tmp_step_0000004" not in left, left
        assert not crashed, f"rank {victim} writes more often"


def test_termination_of_one_rank_commits_one_checkpoint(bench):
    compile_meshes(bench, ("2x2",))
    save_feeds(bench)
    for victim in (0, 3):
        root, log = bench.path(f"root{victim}"), bench.path(f"log{victim}")
        ranks = Ranks(bench, 4, "--steps", 100000000, "--checkpoint", root, "--log", log,
                      "--quiet")
        deadline = time.monotonic() + 60
        while not log.exists() or log.stat().st_size == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ranks.processes[victim].send_signal(signal.SIGTERM)
        assert ranks.wait() == [143] * 4, ranks.messages
        steps = steps_in(root)
        assert len(steps) == 1, steps
        done = int(steps[0][5:])
        assert len(log.read_text().splitlines()) == done
        resumed = run(bench, "2x2", done + 1, "--checkpoint", root, "--resume", "auto")
        assert [record["step"] for record in resumed.steps] == [done + 1]


def test_termination_of_the_starting_process_commits_one_checkpoint(bench):
    compile_meshes(bench, ("2x1",))
    save_feeds(bench)
    data = [f"--data={name}={name}.npy" for name in FEEDS]
    process = subprocess.Popen([bench.path("train"), *data, "--steps", "100000000", "--threads",
                                "1", "--checkpoint", "root", "--log", "log"], cwd=bench.folder,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("[0] step 1/")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    done = len(bench.path("log").read_text().splitlines())
    assert steps_in(bench.path("root")) == [f"step_{done:07}"]


def test_ranks_with_other_data_are_refused(bench):
    compile_meshes(bench, ("2x1",))
    save_feeds(bench)
    bench.path("short").mkdir()
    for name, value in FEEDS.items():
        np.save(bench.path(f"short/{name}.npy"), value[:20])
    short = {"cwd": bench.path("short")}
    ranks = Ranks(bench, 2, "--steps", 1, extra={1: short})
    codes = ranks.wait()
    assert codes[0] in (1, 200) and codes[1] in (1, 200) and 1 in codes, (codes, ranks.messages)
    assert "samples 32" in "".join(ranks.messages), ranks.messages
    assert "samples 20" in "".join(ranks.messages), ranks.messages


def test_an_error_of_one_rank_ends_all(bench):
    compile_meshes(bench, ("2x2",))
    labels = FEEDS["labels"].copy()
    labels[6] = 10000  # a row of the second replica, read by the last stage alone
    save_feeds(bench)
    np.save(bench.path("labels.npy"), labels)
    ranks = Ranks(bench, 4, "--steps", 4)
    codes = ranks.wait()
    assert sorted(codes) == [1, 200, 200, 200] and codes[3] == 1, (codes, ranks.messages)
    assert "index 10000 is out of range" in ranks.messages[3], ranks.messages
    for rank in range(3):
        assert "rank 3" in ranks.messages[rank], ranks.messages


run_tests(globals(), sys.argv[1:])
