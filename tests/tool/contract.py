"""What every executable promises: equal files, equal bits, planned memory, no dependencies.

contract.py [TEST...]
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import run_tests
from small_models import language_data, language_model, perceptron, perceptron_data


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def compile_language_model(bench, *options):
    bench.compile(language_model(4, 0.1), "--optimizer", "adamw", "--clip-norm", "1",
                  "--micro-batches", "2", *options)


def plan_of(bench):
    result = bench.run(bench.path("train"), "--print-plan")
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_equal_input_gives_an_equal_file(bench):
    bench.write_model(language_model(4, 0.1))
    digests = set()
    for name, jobs in (("here", 1), ("there", 2), ("elsewhere/deep", 2)):
        folder = bench.path(name)
        (folder / "temporary").mkdir(parents=True)
        shutil.copy(bench.path("model.onnx"), folder / "model.onnx")
        subprocess.run([os.environ["SGTC"], "model.onnx", "-o", "train", "-j", str(jobs)],
                       cwd=folder, check=True, stderr=subprocess.DEVNULL,
                       env={**os.environ, "TMPDIR": str(folder / "temporary")})
        digests.add(digest(folder / "train"))
        assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "temporary",
                                                                  "train"]
        assert not list((folder / "temporary").iterdir())
    assert len(digests) == 1


def test_printed_plan_is_the_emitted_plan(bench):
    compile_language_model(bench, "--emit=exe,plan-json=plan.json")
    emitted = bench.path("plan.json").read_text()
    assert plan_of(bench) == emitted
    assert json.loads(emitted)[0]["format"] == "sgtc-plan"


def test_bits_do_not_depend_on_threads_or_runs(bench):
    for model, feeds, options in (
            (language_model(4, 0.1), language_data(24, 0.3), ["--micro-batches", "2"]),
            (perceptron(192), perceptron_data(192), [])):
        bench.compile(model, *options)
        digests = set()
        for threads in (1, 2, 3, 2):
            losses, _ = bench.train("--shuffle", "--threads", threads, feeds=feeds, steps=7,
                                    rate=0.05)
            digests.add((digest(bench.path("weights.safetensors")), tuple(losses)))
        assert len(digests) == 1, digests


def test_code_for_this_machine_runs_here_with_the_same_bits(bench):
    runs = []
    for cpu in ("x86-64-v3", "native"):
        bench.compile(perceptron(192), "--cpu", cpu)
        losses, _ = bench.train(feeds=perceptron_data(192), steps=5, rate=0.05)
        runs.append((digest(bench.path("weights.safetensors")), tuple(losses)))
    assert runs[0] == runs[1], runs


def test_memory_is_what_the_plan_says(bench):
    compile_language_model(bench)
    arena = json.loads(plan_of(bench))[0]["positions"][0]["arena_bytes"]
    result = bench.start("--steps", 3, feeds=language_data(24),
                         env={**os.environ, "SGTC_POISON": "1"})
    assert result.returncode == 0, result.stderr
    touched, total = map(int, re.search(r"highest byte touched (\d+) of (\d+)",
                                        result.stdout).groups())
    assert total == arena
    assert arena - 64 < touched <= arena, (touched, arena)


def test_poisoned_memory_changes_no_bit(bench):
    compile_language_model(bench)
    digests = set()
    for poison in ("0", "1"):
        result = bench.start("--steps", 5, "--save", "weights", feeds=language_data(24),
                             env={**os.environ, "SGTC_POISON": poison})
        assert result.returncode == 0, result.stderr
        digests.add(digest(bench.path("weights")))
    assert len(digests) == 1


def test_kernels_touch_what_the_plan_says(bench):
    for model, feeds, options in (
            (language_model(4, 0.1), language_data(24), ["--micro-batches", "2"]),
            (perceptron(16), perceptron_data(16), ["--optimizer", "adamw"])):
        bench.compile(model, *options)
        digests = set()
        for check in ("0", "1"):
            result = bench.start("--steps", 2, "--save", "weights", feeds=feeds,
                                 env={**os.environ, "SGTC_CHECK_ACCESSES": check})
            assert result.returncode == 0, result.stderr
            digests.add(digest(bench.path("weights")))
        assert len(digests) == 1


def test_resident_memory(bench):
    bench.compile(perceptron(1024))
    arena = json.loads(plan_of(bench))[0]["positions"][0]["arena_bytes"]
    bench.start("--steps", 0, feeds=perceptron_data(1024))
    log = bench.path("log")
    data = [f"--data={name}={bench.path(name)}.npy" for name in ("x", "y")]
    with subprocess.Popen([bench.path("train"), *data, "--quiet", "--steps", "1000000", "--threads",
                           "2", "--log", log]) as process:
        deadline = time.monotonic() + 60
        while not log.exists() or log.read_text().count("\n") < 5:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143, process.returncode
    resident = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])
    assert resident <= arena + (64 << 20), (resident, arena)


def test_steps_do_not_allocate(bench):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")
    if compiler is None:
        print("     no C compiler: allocations are not counted")
        return
    library = bench.path("count.so")
    source = pathlib.Path(__file__).with_name("count_allocations.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    compile_language_model(bench)
    counts = []
    for steps in (2, 100):
        result = bench.start("--steps", steps, "--shuffle", "--log", "log",
                             feeds=language_data(20), env={"LD_PRELOAD": str(library)})
        assert result.returncode == 0, result.stderr
        counts.append(int(re.search(r"allocations (\d+)", result.stderr)[1]))
    assert counts[0] > 0 and counts[0] == counts[1], counts


def test_executable_stands_alone(bench):
    compile_language_model(bench)
    program = bench.path("train")
    assert program.stat().st_size < 10_000_000
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1] for line in libraries.splitlines()}
    allowed = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    assert names <= allowed, names
    other = bench.path("other")
    other.mkdir()
    moved = shutil.move(program, other / "renamed")
    bench.path("model.onnx").unlink()
    bench.start("--help", feeds=language_data(24), program="other/renamed")
    data = [f"--data={name}={bench.path(name)}.npy" for name in ("ids", "labels")]
    result = subprocess.run([moved, *data, "--steps", "2"], env={}, cwd="/", capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("| loss ") == 2 and result.stderr == ""


run_tests(globals(), sys.argv[1:])
