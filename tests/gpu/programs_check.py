"""Runs what pack_programs.py has packed on a GPU, beside the same models on the CPU.

programs_check.py FOLDER   exit status 77: there is no Hopper GPU
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from touched_lines import compare_touched, touched_lines

STEPS = 20
TOLERANCE = 1e-4  # of a loss, relative to values above 1
# What the driver takes for kernels and graphs of such programs, beside its context.
KERNELS_AND_GRAPHS = 64 << 20
ALIGNMENT = 256  # bytes, of buffers on GPUs
SKIPPED = 77

failures = 0


def expect(holds, what):
    global failures
    failures += not holds
    print("ok  " if holds else "FAIL", what, flush=True)


class Program:
    """A folder with the programs of one model."""

    def __init__(self, folder):
        self.folder = folder
        self.arguments = json.loads((folder / "arguments.json").read_text())

    def run(self, program, *words, prefix=(), **environment):
        command = [*prefix, f"./{program}", "--quiet", *map(str, words), *self.arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    def train(self, program, *words, steps=STEPS, prefix=(), **environment):
        """The log of a run and the bytes that it leaves behind."""
        words = ["--steps", steps, "--lr", "1e-3", "--log", "log", "--save", "weights",
                 "--eval-every", 10, *words]
        for name in ("log", "weights"):
            (self.folder / name).unlink(missing_ok=True)
        result = self.run(program, *words, prefix=prefix, **environment)
        expect(result.returncode == 0, f"{self.folder.name}: {program} trains {environment or ''}")
        if result.returncode != 0:
            print(result.stdout[-2000:], result.stderr[-2000:])
            return [], b""
        log = [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]
        return log, (self.folder / "weights").read_bytes()


def values(log, key):
    return [record[key] for record in log if key in record]


def outcome(log, weights):
    return [values(log, key) for key in ("loss", "grad_norm", "eval_loss")], weights


def largest_difference(found, expected):
    if len(found) != len(expected) or not found:
        return float("inf")
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, expected))


def check_losses(program, kind, log, expected):
    name = f"{program.folder.name} {kind}"
    for key in ("loss", "grad_norm", "eval_loss"):
        if not values(expected, key):
            continue
        difference = largest_difference(values(log, key), values(expected, key))
        expect(difference <= TOLERANCE, f"{name}: {key} differs from the CPU's by {difference:.2e}")
    losses = values(log, "loss")
    expect(losses and losses[-1] < losses[0], f"{name}: losses {losses[:1]} to {losses[-1:]}")


def check_bits(program, expected):
    name = program.folder.name
    repeated = outcome(*program.train("gpu"))
    expect(repeated == expected, f"{name}: a second run has the same bits")
    stepwise = outcome(*program.train("gpu", SGTC_STEPWISE="1"))
    expect(stepwise == expected, f"{name}: one kernel at a time has the same bits")
    start = time.monotonic()
    from_ptx = outcome(*program.train("ptx"))
    expect(from_ptx == expected, f"{name}: PTX alone has the same bits, in "
                                 f"{time.monotonic() - start:.1f} s")


def check_resume(program, expected):
    shutil.rmtree(program.folder / "checkpoint", ignore_errors=True)
    words = ("--checkpoint", "checkpoint", "--resume", "auto")
    program.train("gpu", *words, steps=STEPS // 2)
    _, weights = program.train("gpu", *words)
    expect(weights == expected[1], f"{program.folder.name}: a resumed run has the same bits")


def check_memory(program):
    name = program.folder.name
    result = program.run("gpu", "--dry-run")
    print(result.stdout.strip())
    found = re.search(r"arena (\d+), inputs (\d+), kernels and graphs (\d+)", result.stdout)
    expect(found and 0 <= int(found[3]) <= KERNELS_AND_GRAPHS,
           f"{name}: device memory is the plan's, inputs, and {found and int(found[3]) >> 20} MiB "
           "for kernels and graphs")


def check_touched(program):
    """A step and an evaluation touch all lines of the plan's buffers and nothing else, but that what
    is cleared or copied at once has padding in between."""
    plan = json.loads(program.run("gpu", "--print-plan").stdout)[0]
    result = program.run("gpu", "--steps", 1, SGTC_POISON="1")
    equal, found = compare_touched(plan["positions"][0], *touched_lines(result.stdout),
                                   alignment=ALIGNMENT)
    expect(equal, f"{program.folder.name}: {found}")


def check_accesses(program):
    """Kernels touch what the plan says, and nothing else."""
    program.train("gpu", steps=2, SGTC_CHECK_ACCESSES="1")


def check_sanitizer(program):
    for kind in ("memcheck", "racecheck"):
        prefix = (shutil.which("compute-sanitizer"), "--tool", kind, "--error-exitcode", "9")
        program.train("gpu", steps=2, prefix=prefix)


def check(folder):
    program = Program(folder)
    start = time.monotonic()
    first = program.train("gpu", SGTC_POISON="1")
    print(f"     {folder.name}: {time.monotonic() - start:.2f} s for {STEPS} steps, start included")
    expected, _ = program.train("cpu")
    check_losses(program, "gpu", first[0], expected)
    check_losses(program, "ampere", program.train("ampere", SGTC_POISON="1")[0], expected)
    check_bits(program, outcome(*first))
    check_resume(program, outcome(*first))
    check_memory(program)
    check_touched(program)
    check_accesses(program)
    if shutil.which("compute-sanitizer"):
        check_sanitizer(program)


def has_gpu(program):
    result = program.run("gpu", "--dry-run")
    return not re.search("CUDA driver: cannot be loaded|driver finds none|is of architecture",
                         result.stderr)


def main():
    folders = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/arguments.json"))
    if not has_gpu(Program(folders[0])):
        print("skipped: no Hopper GPU")
        sys.exit(SKIPPED)
    for folder in folders:
        check(folder)
    print(f"{failures} failures")
    sys.exit(failures > 0)


main()
