"""Times a training step of programs that take turns: one for one GPU, others for several.

    scaling_bench.py ONE TOKENS PROGRAM... [--rounds 3 --steps 30 --warmup 10]

All have the same rows per GPU, so a step would take the same time if communication took none. The
ratio is the first one's time over each one's. TOKENS is a token stream for input_ids and labels.
Per round each takes its steps while the others wait; figures are medians of steps, after --warmup
ones. Ranks are started by the program itself.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def milliseconds(a, program, log):
    log.unlink(missing_ok=True)
    result = subprocess.run(
        [program, "--quiet", "--tokens", f"input_ids,labels={a.tokens}", "--steps",
         str(a.warmup + a.steps), "--lr", str(a.lr), "--log", log],
        capture_output=True, text=True, check=False, timeout=a.timeout)
    if result.returncode != 0:
        raise SystemExit(f"{program}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    steps = [record for record in map(json.loads, log.read_text().splitlines()) if "ms" in record]
    print(f"     {pathlib.Path(program).name}: loss {steps[0]['loss']:.4f} to "
          f"{steps[-1]['loss']:.4f}", flush=True)
    return [record["ms"] for record in steps[a.warmup:]]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("one")
    parser.add_argument("tokens")
    parser.add_argument("programs", nargs="+")
    for option, value in {"--steps": 30, "--warmup": 10, "--rounds": 3, "--timeout": 120}.items():
        parser.add_argument(option, type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-4)
    return parser.parse_args()


def main():
    a = parse()
    times = {program: [] for program in (a.one, *a.programs)}
    with tempfile.TemporaryDirectory() as work:
        for _ in range(a.rounds):
            for program, own in times.items():
                own += milliseconds(a, program, pathlib.Path(work) / "log.jsonl")
    one = statistics.median(times[a.one])
    for program, own in times.items():
        median = statistics.median(own)
        print(f"{pathlib.Path(program).name:24} {median:8.2f} ms, {min(own):.2f} to {max(own):.2f};"
              f" ratio {one / median:.3f}")


if __name__ == "__main__":
    main()
