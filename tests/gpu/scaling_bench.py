"""Times a training step of programs that take turns: one for one GPU, others for several.

    scaling_bench.py ONE TOKENS PROGRAM... [--rounds 3 --steps 30 --warmup 10]

All have the same rows per GPU, so a step would take the same time if communication took none. GPUs
differ by some hundredths in speed and replicas keep pace with the slowest, so ONE runs on every GPU
at once, and the ratio is the time of its slowest over the time of each other program. TOKENS is a
token stream for input_ids and labels. Per round each takes its steps while the others wait; figures
are medians of steps, after --warmup ones. Ranks are started by the program itself. In the end each
of the others takes --traced steps with a trace and tells what its communication costs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


class Run:
    """A program that trains in the background."""

    def __init__(self, a, program, log, gpu=None, steps=None, more=()):
        self.program, self.log, self.warmup, self.timeout = program, log, a.warmup, a.timeout
        log.unlink(missing_ok=True)
        visible = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": str(gpu)}
        self.process = subprocess.Popen(
            [program, "--quiet", "--tokens", f"input_ids,labels={a.tokens}", "--steps",
             str(a.warmup + (steps or a.steps)), "--lr", str(a.lr), "--log", log, *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **visible})

    def milliseconds(self):
        self.output, _ = self.process.communicate(timeout=self.timeout)
        if self.process.returncode != 0:
            raise SystemExit(f"{self.program}: exit {self.process.returncode}\n{self.output}")
        records = map(json.loads, self.log.read_text().splitlines())
        return [record["ms"] for record in records if "ms" in record][self.warmup:]


def show_traced(a, program, work):
    run = Run(a, program, work / "log.jsonl", steps=a.traced, more=["--trace", work / "trace.json"])
    print(f"{pathlib.Path(program).name:28} {statistics.median(run.milliseconds()):8.2f} ms traced")
    for line in run.output.splitlines():
        if line.startswith("communication:"):
            print("  " + line)


def count_gpus():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return listed.stdout.count("\nGPU ") + listed.stdout.startswith("GPU ")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("one")
    parser.add_argument("tokens")
    parser.add_argument("programs", nargs="+")
    for option, value in {"--steps": 30, "--warmup": 10, "--rounds": 3, "--traced": 100,
                          "--timeout": 120}.items():
        parser.add_argument(option, type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-4)
    return parser.parse_args()


def main():
    a = parse()
    gpus = range(count_gpus())
    alone = [[] for _ in gpus]
    times = {program: [] for program in a.programs}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for _ in range(a.rounds):
            runs = [Run(a, a.one, work / f"log-{gpu}.jsonl", gpu) for gpu in gpus]
            for own, run in zip(alone, runs):
                own += run.milliseconds()
            for program, own in times.items():
                own += Run(a, program, work / "log.jsonl").milliseconds()
        for program in times:
            show_traced(a, program, work)
    one = max(map(statistics.median, alone))
    for name, own in [*((f"{a.one} on GPU {gpu}", alone[gpu]) for gpu in gpus), *times.items()]:
        median = statistics.median(own)
        print(f"{pathlib.Path(name).name:28} {median:8.2f} ms, {min(own):.2f} to {max(own):.2f}; "
              f"ratio {one / median:.3f}")


if __name__ == "__main__":
    main()
