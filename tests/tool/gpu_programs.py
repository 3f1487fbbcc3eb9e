"""Programs for GPUs on a machine without one: what they carry, what they ask of the driver (a stub
that runs no kernels), and what they say where they cannot run.

gpu_programs.py [TEST...]
"""

import json
import os
import sys

import numpy as np

from harness import build, expect_text, floats, read_safetensors, run_tests

STUB = os.environ["SGTC_CUDA_STUB"]
ROWS, WIDTH = 8, 1500  # states cross the borders of the pages that inputs lie in
RANDOM = np.random.default_rng(5)
WEIGHTS = {"w": floats(RANDOM.normal(size=WIDTH)), "b": floats(RANDOM.normal(size=WIDTH))}
FEEDS = {"x": floats(RANDOM.normal(size=(4 * ROWS, WIDTH))),
         "y": floats(RANDOM.normal(size=(4 * ROWS, WIDTH)))}


def scaling():
    """Loops alone: a scaled and shifted input, squared errors."""
    return build("m = Mul(x, w) z = Add(m, b) d = Sub(z, y) s = Mul(d, d) "
                 "L = ReduceMean <keepdims = 0>(s)", WEIGHTS,
                 inputs=f"float[{ROWS}, {WIDTH}] x, float[{ROWS}, {WIDTH}] y")


def compiled(bench, *arguments, model=None):
    bench.compile(model or scaling(), "--target", "sm_90a", "--optimizer", "adamw", *arguments)
    return json.loads(bench.run("./train", "--print-plan").stdout)[0]


def run_on_stub(bench, *arguments, **environment):
    """Starts the program on a driver that runs no kernels; the result and the driver's calls."""
    log = bench.path("calls")
    log.unlink(missing_ok=True)
    variables = {**os.environ, "SGTC_CUDA_LIBRARY": STUB, "SGTC_STUB_LOG": str(log),
                 "SGTC_STUB_KERNELS": "none", **environment}
    result = bench.start(*arguments, feeds=FEEDS, env=variables)
    return result, log.read_text().splitlines() if log.exists() else []


def calls_of(plan, schedule):
    """The launches of a schedule, as the driver's stub writes them."""
    position = plan["positions"][0]
    kernels = {kernel["symbol"]: kernel for kernel in plan["kernels"]}
    tasks = {task["name"]: task for task in position["tasks"]}
    launches = []
    for entry in position["schedules"][schedule]:
        for call in tasks[entry["task"]]["calls"]:
            kernel = kernels[call["kernel"]]
            launches.append(f"{kernel['symbol']} {kernel['blocks']}x{kernel['launch']['threads']}")
    return launches


def test_the_driver_gets_the_plans_launches(bench):
    plan = compiled(bench)
    assert plan["target"] == "sm_90a" and plan["cpu_features"] == []
    result, calls = run_on_stub(bench, "--steps", 3, "--lr", 0.1)
    assert result.returncode == 0, result.stderr
    nodes = [line.split(" ", 2)[2].rsplit(" after", 1)[0] for line in calls
             if line.startswith("node ") and " clear " not in line]
    assert nodes == calls_of(plan, "train") + calls_of(plan, "evaluate"), nodes
    assert sum(line.startswith("cuGraphLaunch") for line in calls) == 3


def test_states_are_brought_to_the_gpu_and_back(bench):
    compiled(bench)
    arguments = ("--steps", 2, "--lr", 0.1, "--save", "after", "--checkpoint", "c")
    result, _ = run_on_stub(bench, *arguments)
    assert result.returncode == 0, result.stderr
    for name, value in read_safetensors(bench.path("after")).items():
        np.testing.assert_array_equal(value, WEIGHTS[name])
    result, calls = run_on_stub(bench, "--steps", 5, *arguments[2:], "--resume", "auto")
    assert result.returncode == 0, result.stderr
    assert sum(line.startswith("cuGraphLaunch") for line in calls) == 3


def test_the_plan_shows_launches(bench):
    bench.write_model(scaling())
    text = bench.sgtc("model.onnx", "--target", "sm_90a", "--emit", "plan").stdout
    assert "target        sm_90a, 132 multiprocessors" in text, text
    assert "grid threads      shared  nodes" in text, text
    assert "prediction: step" in text, text


def test_a_program_carries_ptx_and_what_ptxas_makes_of_it(bench):
    compiled(bench)
    program = bench.path("train").read_bytes()
    plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
    # The plan's kernels and the mark behind communications.
    assert program.count(b".target sm_90a") == len(plan["kernels"]) + 1
    found_ptxas = "SGTC_PTXAS" in os.environ
    assert (program.count(b"\x7fELF") > 1) == found_ptxas
    _, calls = run_on_stub(bench, "--steps", 1)
    loads = {line for line in calls if line.startswith("load ")}
    assert loads == {"load cubin" if found_ptxas else "load ptx"}


def test_without_ptxas_the_driver_compiles_ptx(bench):
    compiled(bench, "--ptxas", "none")
    result, calls = run_on_stub(bench, "--steps", 1)
    assert result.returncode == 0, result.stderr
    assert {line for line in calls if line.startswith("load ")} == {"load ptx"}
    result, _ = run_on_stub(bench, "--steps", 1, SGTC_STUB_FAIL="load ptx=222")
    expect_text(result, "cannot compile the program's PTX of version 8.0", "install a newer driver")


def test_machines_that_cannot_run_it_are_told_so(bench):
    compiled(bench)
    for word, environment in {
            "error: CUDA driver: cannot be loaded: ": {"SGTC_CUDA_LIBRARY": "/nowhere/libcuda.so.1"},
            "error: GPU: the CUDA driver finds none; ": {"SGTC_STUB_GPUS": "0"},
            "is of architecture sm_80, the program was compiled for sm_90a; ":
                {"SGTC_STUB_CAPABILITY": "80"},
            "the program needs 0.00 GiB of its memory, free are": {"SGTC_STUB_MEMORY": "1000"},
    }.items():
        result, calls = run_on_stub(bench, "--steps", 1, **environment)
        assert result.returncode == 1, environment
        expect_text(result, word)
        assert result.stderr.count("\n") == 1, result.stderr
        assert not any(line.startswith("load ") for line in calls), calls


def test_what_needs_no_gpu_works_without_one(bench):
    compiled(bench)
    nowhere = {**os.environ, "SGTC_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}
    for argument in ("--help", "--version", "--print-plan"):
        result = bench.run("./train", argument, env=nowhere)
        assert result.returncode == 0 and result.stdout, result.stderr
    result = bench.start("--steps", 1, feeds={"x": FEEDS["x"]}, env=nowhere)
    expect_text(result, "y")
    assert result.returncode == 1 and "CUDA" not in result.stderr, result.stderr


def test_what_there_is_no_code_for_is_refused(bench):
    arguments = ("--target", "sm_90a")
    expect_text(bench.refuse(scaling(), *arguments, "--emit=asm"), "use --emit=ptx")
    expect_text(bench.refuse(scaling(), "--emit=ptx"), "add --target sm_90a or --target sm_80")
    result = bench.sgtc("model.onnx", *arguments, "--cpu", "native")
    assert result.returncode == 2
    expect_text(result, "--cpu: belongs to --target cpu, found sm_90a")
    expect_text(bench.refuse(scaling(), *arguments, "--ptxas", "/nowhere/ptxas"),
                "/nowhere/ptxas: cannot be started")


def run_on_stubs(bench, *arguments, **environment):
    """The same for a mesh: result, and the calls of each rank."""
    for log in bench.folder.glob("calls.*"):
        log.unlink()
    result, _ = run_on_stub(bench, *arguments, SGTC_NCCL_LIBRARY=STUB, SGTC_STUB_GPUS="4",
                            SGTC_STUB_FOLDER=str(bench.folder), **environment)
    logs = sorted(bench.folder.glob("calls.*"))
    return result, [log.read_text().splitlines() for log in logs]


def layers():
    """Two products, so that there is something to cut and to reduce."""
    weights = {"u": floats(RANDOM.normal(size=(WIDTH, 16))),
               "v": floats(RANDOM.normal(size=(16, WIDTH)))}
    return build("h = MatMul(x, u) t = Tanh(h) z = MatMul(t, v) d = Sub(z, y) s = Mul(d, d) "
                 "L = ReduceMean <keepdims = 0>(s)", weights,
                 inputs=f"float[{ROWS}, {WIDTH}] x, float[{ROWS}, {WIDTH}] y")


# How the nodes of communications begin, as the stubs write them.
NCCL_NODES = {"all_reduce": "ncclAllReduce", "send": "ncclSend", "receive": "ncclRecv"}
COPY_NODES = {"all_reduce": "ncclAllReduce", "send": "wait", "receive": "write"}


def communications_of(plan, position, schedule, nodes):
    tasks = {task["name"]: task for task in plan["positions"][position]["tasks"]}
    kinds = [tasks[entry["task"]] for entry in plan["positions"][position]["schedules"][schedule]]
    return [nodes[task["kind"]] for task in kinds if task["kind"] != "compute"]


def test_meshes_communicate_as_planned(bench):
    for mesh, ranks in (("1x2", 2), ("2x1", 2), ("2x2", 4)):
        plan = compiled(bench, "--mesh", mesh, "--micro-batches", 2, model=layers())
        assert all(1 <= each["blocks"] <= 32 for each in plan["communicators"])
        for copies, names in (("1", COPY_NODES), ("0", NCCL_NODES)):
            result, logs = run_on_stubs(bench, "--steps", 2, "--lr", 0.1, SGTC_COPY_ENGINE=copies)
            assert result.returncode == 0, result.stderr
            assert len(logs) == ranks
            for rank, log in enumerate(logs):
                position = rank * len(plan["positions"]) // ranks
                nodes = [line.split()[2].split(":")[0] for line in log if line.startswith("node ")]
                found = [name for name in nodes if name in names.values()]
                expected = [name for schedule in ("train", "evaluate")
                            for name in communications_of(plan, position, schedule, names)]
                assert found == expected, (mesh, rank, found, expected)
                assert sum(line.startswith("cuGraphLaunch") for line in log) == 2


def launches_of_the_update(bench):
    """The kernels of the update phase, as often as they are called, and the plan."""
    bench.compile(None, "--target", "sm_90a", "--precision", "bf16", "--optimizer", "adamw",
                  "--weight-decay", 0.1, "--clip-norm", 1)
    plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
    kernels = {kernel["symbol"]: kernel for kernel in plan["kernels"]}
    return [kernels[call["kernel"]] for task in plan["positions"][0]["tasks"]
            if task["name"].startswith("update") for call in task["calls"]], plan


def test_an_update_of_all_parameters_is_a_few_launches(bench):
    found = {}
    for layers_of_model in (2, 6):
        bench.model("gpt2", "--layers", layers_of_model, "--width", 96, "--heads", 3, "--vocab",
                    211, "--seq", 40, "--batch", 2)
        kernels, plan = launches_of_the_update(bench)
        found[layers_of_model] = len(kernels)
        parameters = sum(state["role"] == "parameter" for state in plan["states"])
        updates = [len(k["access"]) for k in kernels
                   if sum(node.startswith("update of ") for node in k["nodes"]) > 1]
        assert sum(updates) > 7 * (parameters - 4), (parameters, updates)
    assert found[2] == found[6] <= 16, found


def test_kernels_beside_reductions_leave_room(bench):
    """And no others: without replicas, or before the first reduction."""
    bench.model("gpt2", "--layers", 2, "--width", 768, "--heads", 12, "--vocab", 50304, "--seq", 256,
                "--batch", 8)
    grids = {}
    for mesh in ("1x1", "1x2"):
        bench.compile(None, "--target", "sm_90a", "--precision", "bf16", "--mesh", mesh)
        plan = json.loads(bench.run("./train", "--print-plan").stdout)[0]
        blocks = {k["symbol"]: k["blocks"] for k in plan["kernels"] if k["kind"] == "matmul"}
        for task in plan["positions"][0]["tasks"]:
            phase = task["name"].split("_")[0]
            own = grids.setdefault((mesh, phase), set())
            own |= {blocks[call["kernel"]] for call in task["calls"] if call["kernel"] in blocks}
    assert grids["1x1", "forward"] == grids["1x2", "forward"], grids
    assert max(grids["1x1", "backward"]) == 132 and 124 not in grids["1x1", "backward"], grids
    assert 124 in grids["1x2", "backward"], grids


run_tests(globals(), sys.argv[1:])
