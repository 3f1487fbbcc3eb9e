"""Times a training step of programs that keep more or less for their backward phase.

    memory_bench.py TOKENS WHOLE PROGRAM... [--rounds 2 --steps 20 --warmup 5]

All are of one model and precision; WHOLE keeps everything. Prints each one's device memory, its
predicted and measured step, and both as multiples of those of WHOLE. All losses must have the same
bits. TOKENS is a token stream for input_ids and labels. Programs take turns; figures are medians of
steps, after --warmup ones.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(a, program, *options):
    command = [program, "--tokens", f"input_ids,labels={a.tokens}", *map(str, options)]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=a.timeout)
    if result.returncode != 0:
        raise SystemExit(f"{program}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def prediction(program):
    """Milliseconds of a step and bytes of the arena."""
    text = subprocess.run([program, "--print-plan"], capture_output=True, text=True, check=True)
    found = json.loads(text.stdout)[0]["prediction"]
    return found["step_seconds"] * 1e3, found["peak_bytes"][0]


def train(a, program, log):
    """Milliseconds of the steps, and their losses."""
    log.unlink(missing_ok=True)
    run(a, program, "--quiet", "--steps", a.warmup + a.steps, "--lr", a.lr, "--log", log)
    steps = [record for record in map(json.loads, log.read_text().splitlines()) if "ms" in record]
    return [step["ms"] for step in steps[a.warmup:]], [step["loss"] for step in steps]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens")
    parser.add_argument("programs", nargs="+")
    for option, value in {"--steps": 20, "--warmup": 5, "--rounds": 2, "--timeout": 200}.items():
        parser.add_argument(option, type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-4)
    return parser.parse_args()


def main():
    a = parse()
    times = {program: [] for program in a.programs}
    losses = {}
    with tempfile.TemporaryDirectory() as work:
        for _ in range(a.rounds):
            for program, own in times.items():
                milliseconds, found = train(a, program, pathlib.Path(work) / "log.jsonl")
                own += milliseconds
                losses.setdefault(program, []).append(found)
    whole_predicted = prediction(a.programs[0])[0]
    whole_measured = statistics.median(times[a.programs[0]])
    for program, own in times.items():
        predicted, arena = prediction(program)
        measured = statistics.median(own)
        print(f"{pathlib.Path(program).name:20} arena {arena / 2**30:6.2f} GiB; step predicted "
              f"{predicted:7.1f} ms, {predicted / whole_predicted:.3f} of the whole; measured "
              f"{measured:7.1f} ms, {measured / whole_measured:.3f} of the whole, "
              f"{measured / predicted:.3f} of the prediction")
        for line in run(a, program, "--dry-run").splitlines():
            if "GPU memory" in line:
                print(f"    {line.strip()}", flush=True)
    first = losses[a.programs[0]][0]
    same = all(found == first for own in losses.values() for found in own)
    print(f"losses from {first[0]:.6f} to {first[-1]:.6f}: "
          f"{'the same bits in all' if same else 'DIFFERENT'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
