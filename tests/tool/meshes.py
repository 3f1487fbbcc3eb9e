"""Runs over several ranks agree with runs of one.

meshes.py [TEST...]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from harness import build, expect_near, expect_text, read_safetensors, run_tests
from mesh_models import (BATCH, cnn_data, gpt2_data, train, write_cnn, write_gpt2)

ADAM = ["--optimizer", "adamw", "--clip-norm", "1"]
# All make a step of 8 micro-batches: per number of micro-batches of a replica, the meshes.
MESHES = {8: ["1x1", "2x1"], 4: ["1x2", "2x2", "4x2"], 2: ["1x4", "2x4"]}


def compile_meshes(bench, meshes, micro_batches, *options, output="train"):
    bench.compile(None, "--mesh", ",".join(meshes), "--micro-batches", micro_batches, *options,
                  output=output)


def compare_pipelines(bench, feeds, options):
    meshes = ["1x1", "2x1", "4x1"]
    compile_meshes(bench, meshes, 4, *options)
    expected = train(bench, "1x1", feeds)
    assert len(set(expected.column("loss"))) == 4 and expected.weights
    for mesh in meshes:
        for threads in (1, 2):
            assert train(bench, mesh, feeds, threads=threads).bits() == expected.bits(), mesh


def test_pipelines_of_a_tied_transformer_have_the_same_bits(bench):
    write_gpt2(bench)
    compare_pipelines(bench, gpt2_data(), ADAM)


def test_pipelines_of_a_normalized_network_have_the_same_bits(bench):
    write_cnn(bench)
    compare_pipelines(bench, cnn_data(), ["--optimizer", "sgd", "--momentum", "0.9"])


def test_pipelines_of_an_exported_bert_with_dropout_have_the_same_bits(bench):
    folder = pathlib.Path(os.environ.get("SGTC_SHARED", "")) / "data/exported/hf_bert_mlm"
    if not folder.exists():
        print("     no exported models here")
        return
    model = onnx.load(folder / "ts17.onnx")
    model.graph.initializer.extend([numpy_helper.from_array(np.float32(0.1), "dropout_ratio"),
                                    numpy_helper.from_array(np.array(True), "dropout_on")])
    for node in model.graph.node:
        if node.op_type == "Dropout":
            node.input[:] = [node.input[0], "dropout_ratio", "dropout_on"]
    bench.write_model(model)
    feeds = {}
    for name in ("input_ids", "attention_mask", "labels"):
        rows = np.load(folder / f"{name}.npy")
        feeds[name] = np.concatenate([np.roll(rows, i, axis=0) for i in range(8)])
    compare_pipelines(bench, feeds, ADAM)


def compare_replicas(bench, feeds, options):
    expected = None
    for micro_batches, meshes in MESHES.items():
        compile_meshes(bench, meshes, micro_batches, *options)
        same_replicas = {}
        for mesh in meshes:
            run = train(bench, mesh, feeds, "--shuffle")
            expected = expected or run
            np.testing.assert_allclose(run.column("loss"), expected.column("loss"), rtol=1e-5)
            weights = read_safetensors(run.file)
            for name, value in read_safetensors_of(expected).items():
                expect_near(weights[name], value, 1e-3)  # biases of keys have no gradient but noise
            # A pipeline changes no bit, whatever the replicas.
            assert same_replicas.setdefault(mesh[-1], run.bits()) == run.bits(), mesh


def read_safetensors_of(run):
    path = run.file.with_suffix(".copy")
    path.write_bytes(run.weights)
    return read_safetensors(path)


def test_replicas_of_a_tied_transformer_agree(bench):
    write_gpt2(bench)
    compare_replicas(bench, gpt2_data(), ADAM)


def test_replicas_of_a_normalized_network_agree(bench):
    write_cnn(bench)
    compare_replicas(bench, cnn_data(), ["--optimizer", "sgd", "--momentum", "0.9"])


def moment_elements(bench, mesh, *options):
    """Elements of moments of one rank, by the plan."""
    path = bench.path("plan.json")
    bench.sgtc(bench.path("model.onnx"), "--optimizer", "adamw", "--mesh", mesh, "--emit",
               f"plan-json={path}", *options)
    plan = json.loads(path.read_text())[0]
    return sum(int(np.prod(state["shape"])) // state["shards"] for state in plan["states"]
               if state["role"] == "moment" and state["position"] == 0)


def test_replicas_that_share_the_optimizer_have_the_bits_of_those_that_do_not(bench):
    for write, data, options in ((write_gpt2, gpt2_data, ["--optimizer", "adamw"]),
                                 (write_cnn, cnn_data, ["--optimizer", "sgd", "--momentum", "0.9"])):
        write(bench)
        meshes = ["1x2", "2x2", "1x4"]
        compile_meshes(bench, meshes, 2, *options, output="whole")
        compile_meshes(bench, meshes, 2, *options, "--shard", "optimizer", output="shared")
        for mesh in meshes:
            expected = train(bench, mesh, data(), program="whole")
            run = train(bench, mesh, data(), program="shared")
            assert run.column("loss") == expected.column("loss"), mesh
            assert run.weights == expected.weights, mesh
            np.testing.assert_allclose(run.column("grad_norm"), expected.column("grad_norm"),
                                       rtol=1e-6)


def test_both_ends_of_a_pipeline_share_the_moments_of_a_tied_embedding(bench):
    write_gpt2(bench, dropout=0, vocabulary=128)  # large enough to be shared out
    compile_meshes(bench, ["1x1"], 4, "--optimizer", "adamw", output="one")
    compile_meshes(bench, ["2x2"], 2, "--optimizer", "adamw", output="whole")
    compile_meshes(bench, ["2x2"], 2, "--optimizer", "adamw", "--shard", "optimizer", "--emit",
                   f"plan-json={bench.path('plan.json')}", "--emit", "exe", output="shared")
    plan = json.loads(bench.path("plan.json").read_text())[0]
    assert [(state["position"], state["shards"]) for state in plan["states"]
            if state["name"] == "wte.weight.exp_avg"] == [(0, 2), (1, 2)]
    expected = train(bench, "1x1", gpt2_data(), steps=4, program="one")
    whole = train(bench, "2x2", gpt2_data(), steps=4, program="whole")
    shared = train(bench, "2x2", gpt2_data(), steps=4, program="shared")
    assert (shared.column("loss"), shared.weights) == (whole.column("loss"), whole.weights)
    np.testing.assert_allclose(shared.column("loss"), expected.column("loss"), rtol=1e-5)


def test_replicas_that_share_the_optimizer_hold_a_part_of_the_moments(bench):
    bench.model("mlp", "--batch", 4, "--inputs", 64, "--hidden", "256,256", "--classes", 10)
    whole = moment_elements(bench, "1x4")
    assert moment_elements(bench, "1x4", "--shard", "optimizer") < 0.3 * whole


def test_clipping_is_global_where_replicas_share_the_optimizer(bench):
    write_gpt2(bench)
    compile_meshes(bench, ["1x2", "2x2", "4x2"], 4, *ADAM, output="whole")
    compile_meshes(bench, ["1x2", "2x2", "4x2"], 4, *ADAM, "--shard", "optimizer", output="shared")
    expected = train(bench, "1x2", gpt2_data(), program="whole")
    bits = train(bench, "1x2", gpt2_data(), program="shared").bits()
    for mesh in ("1x2", "2x2", "4x2"):
        run = train(bench, mesh, gpt2_data(), program="shared")
        assert run.bits() == bits, mesh  # a pipeline changes none
        for name in ("loss", "grad_norm"):
            np.testing.assert_allclose(run.column(name), expected.column(name), rtol=1e-5)


def test_fewer_micro_batches_than_stages(bench):
    write_gpt2(bench)
    for micro_batches in (1, 2, 3):
        compile_meshes(bench, ["1x1", "4x1"], micro_batches, *ADAM)
        expected = train(bench, "1x1", gpt2_data())
        assert train(bench, "4x1", gpt2_data()).bits() == expected.bits(), micro_batches


def test_clipping_is_global(bench):
    write_gpt2(bench, dropout=0)
    options = ["--optimizer", "sgd", "--clip-norm", "0.01"]
    compile_meshes(bench, ["1x1"], 8, *options, output="whole")
    compile_meshes(bench, ["1x2", "2x2", "4x2"], 4, *options)
    expected = train(bench, "1x1", gpt2_data(), program="whole")
    assert min(expected.column("grad_norm")) > 0.1  # clipping is active in every step
    for mesh in ("1x2", "2x2", "4x2"):
        run = train(bench, mesh, gpt2_data())
        np.testing.assert_allclose(run.column("grad_norm"), expected.column("grad_norm"),
                                   rtol=1e-5)


def test_samples_that_do_not_fill_a_step_are_dropped_by_all(bench):
    write_gpt2(bench)
    compile_meshes(bench, ["1x1"], 2, *ADAM, output="whole")
    compile_meshes(bench, ["1x2"], 1, *ADAM)
    for samples, steps in ((5, 4), (11, 6)):
        feeds = gpt2_data(samples)
        expected = train(bench, "1x1", feeds, "--shuffle", steps=steps, program="whole")
        run = train(bench, "1x2", feeds, "--shuffle", steps=steps)
        np.testing.assert_allclose(run.column("loss"), expected.column("loss"), rtol=1e-5)
        note = f"the last {samples % (2 * BATCH)} of {samples} samples do not fill a step"
        assert run.stdout.count(note) == 1, run.stdout
    result = train(bench, "1x2", gpt2_data(1), code=1)
    expect_text(result, "has 1 samples, a step takes 4")


def test_evaluation_and_prediction_have_the_bits_of_one_rank(bench):
    write_cnn(bench)
    for micro_batches, meshes in ((1, ["1x1"]), (2, ["2x1", "1x2", "2x2"])):
        compile_meshes(bench, meshes, micro_batches, "--optimizer", "sgd")
        for mesh in meshes:
            feeds = cnn_data(25)  # not a multiple of any pass
            logits = bench.path("logits.npy")
            np.save(bench.path("held_x.npy"), feeds["x"])
            np.save(bench.path("held_labels.npy"), feeds["labels"])
            run = train(bench, mesh, cnn_data(), "--eval", f"x={bench.path('held_x.npy')}",
                        "--eval", f"labels={bench.path('held_labels.npy')}", "--predict",
                        f"logits={logits}", steps=0)
            found = run.evaluations, logits.read_bytes()
            if mesh == "1x1":
                expected = found
            assert len(found[0]) == 1 and found == expected, mesh


def test_a_step_that_is_not_finite_is_skipped_by_all(bench):
    write_cnn(bench)
    feeds = cnn_data()
    compile_meshes(bench, ["1x1"], 4, "--optimizer", "sgd", output="whole")
    compile_meshes(bench, ["1x2", "2x2"], 2, "--optimizer", "sgd")
    feeds["x"][2 * 8 + 6] = np.inf  # in the third step's last micro-batch, of the last replica
    expected = train(bench, "1x1", feeds, program="whole")
    for mesh in ("1x2", "2x2"):
        run = train(bench, mesh, feeds)
        assert run.column("skipped") == expected.column("skipped") == [False, False, True, False]
        assert "1 of 4 steps were skipped" in run.stdout
        stopped = train(bench, mesh, feeds, "--on-nan", "stop", code=1)
        assert stopped.stderr.count("error: step 3: loss or gradient is not finite") == 1


def test_values_keep_their_types_where_others_were_in_their_place(bench):
    model = build(
        "q = QuantizeLinear(w, scale, zero) d = DequantizeLinear(q, scale, zero) "
        "p = MatMulInteger(q, other) s = Cast<to: int = 13>(p) "
        'x = BitShift<direction: string = "LEFT">(s, u) y = BitwiseAnd(x, u) z = DFT(y) '
        "c = Cast<to: int = 1>(z) k = ReduceSum<keepdims: int = 0>(c) e = Mul(d, w) f = Mul(e, w) "
        "t = ReduceSum<keepdims: int = 0>(f) L = Add(k, t)",
        {"w": np.arange(1, 7, dtype=np.float32).reshape(2, 3), "scale": np.float32([0.1]),
         "zero": np.uint8([3]), "other": np.uint8([[1, 1], [1, 175], [1, 1]]), "u": np.uint64([1])},
        opset=21)
    bench.compile(model, "--mesh", "1x1,3x1", "--micro-batches", 3, "--schedule", "gpipe")
    plans = json.loads(bench.run("./train", "--print-plan").stdout)
    sent = {task["dtype"] for position in plans[1]["positions"] for task in position["tasks"]
            if task["kind"] == "send"}
    assert {"u64", "f64"} & sent and "f32" in sent, sent
    losses = [train(bench, mesh, {}).column("loss") for mesh in ("1x1", "3x1")]
    assert losses[0] == losses[1] and len(set(losses[0])) > 1, losses


def test_other_numbers_of_ranks_are_refused(bench):
    write_cnn(bench)
    compile_meshes(bench, ["2x1", "2x2"], 2, "--optimizer", "sgd")
    feeds = cnn_data()
    for arguments in (["--nproc", 3], ["--nproc", 1], ["--mesh", "4x1"]):
        result = bench.start("--steps", 1, *arguments, feeds=feeds)
        assert result.returncode != 0
        expect_text(result, "2x1", "2x2")
        assert result.stderr.count("error") == 1, result.stderr
    result = bench.start("--dry-run", feeds=feeds)  # the mesh that is named first
    assert result.returncode == 0, result.stderr
    for rank in range(2):
        assert f"rank {rank} of 2 | local rank {rank} of 2 | host" in result.stdout, result.stdout
    assert result.stdout.count("step 1/") == 1
    plan = bench.start("--print-plan", program="train")
    assert plan.returncode == 0 and plan.stdout.startswith("[{")


def test_steps_allocate_nothing(bench):
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang-19")
    if not compiler:
        print("     no C compiler: allocations are not counted")
        return
    library = bench.path("count.so")
    source = pathlib.Path(__file__).with_name("count_allocations.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    write_gpt2(bench)
    compile_meshes(bench, ["2x2"], 2, *ADAM)
    counts = []
    for steps in (2, 100):
        run = train(bench, "2x2", gpt2_data(), steps=steps,
                    env={**os.environ, "LD_PRELOAD": str(library)})
        found = re.findall(r"\[(\d)\] allocations (\d+)", run.stderr)
        counts.append([int(count) for _, count in sorted(found)])
    assert len(counts[0]) == 4, counts
    for few, many in zip(*counts):
        assert abs(many - few) < 20, counts  # messages between monitors come and go


run_tests(globals(), sys.argv[1:])
