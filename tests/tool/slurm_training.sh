#!/usr/bin/env bash
# Trains a small model on the mesh 2x2 of two Slurm nodes: the same losses as on one machine, all
# ranks stop together after a signal, and the job goes on from the checkpoint.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy' 2>/dev/null || exit 77
source "$(dirname "${BASH_SOURCE[0]}")/lib_slurm.sh"
enter_cluster "$@"

work=$cluster/work
mkdir "$work"
cd "$work"

"$SGTC_MODEL" mlp --batch 8 -o mlp.onnx
"$SGTC" mlp.onnx --mesh 2x2 -o train
"$SGTC_PYTHON" - <<'END'
import numpy as np

rng = np.random.default_rng(0)
np.save("x.npy", rng.standard_normal((256, 64)).astype(np.float32))
np.save("labels.npy", rng.integers(0, 10, 256))
END
train=(./train --data x=x.npy --data labels=labels.npy)

# losses FILE: steps and losses of a log.
losses() { sed 's/"ms".*//; s/,"grad_norm".*//' "$1"; }

# same_losses NAME NAME
same_losses() {
  diff <(losses "$1.jsonl") <(losses "$2.jsonl") >&2 || {
    echo "FAILED: $1 and $2 have different losses" >&2
    exit 1
  }
}

# code CODE COMMAND...: fails if the command's exit code is another one.
code() {
  local expected=$1 found=0
  shift
  "$@" || found=$?
  [ "$found" = "$expected" ] && return
  echo "FAILED: exit code $found, expected $expected: $*" >&2
  exit 1
}

# Waits until a run that writes the log FILE has done STEP steps.
wait_for_step() {
  local attempt
  for attempt in {1..100}; do
    grep -q "\"step\":$2," "$1" 2>/dev/null && return
    sleep 0.1
  done
  echo "FAILED: $1 does not come to step $2" >&2
  exit 1
}

# The process of one rank of the running job.
process_of() {
  local pid
  for pid in $(pgrep -x train); do
    grep -qz "^SLURM_PROCID=$1\$" "/proc/$pid/environ" && echo "$pid"
  done
}

two_nodes_compute_what_one_does() {
  "${train[@]}" --steps 20 --log here.jsonl --quiet
  srun -N2 -n4 "${train[@]}" --steps 20 --log nodes.jsonl --checkpoint checkpoints --quiet
  [ "$(wc -l <nodes.jsonl)" = 20 ]
  same_losses here nodes
}

a_stopped_job_goes_on() {
  srun -N2 -n4 "${train[@]}" --steps 1000000 --checkpoint stopped --log stopped.jsonl --quiet &
  local job=$! steps
  wait_for_step stopped.jsonl 20
  scancel --signal=TERM "$(running_job).0"
  code 143 wait "$job"
  steps=$(($(ls stopped | sed -n 's/^step_0*//p' | sort -n | tail -1) + 5))
  srun -N2 -n4 "${train[@]}" --steps "$steps" --checkpoint stopped --resume auto \
    --log stopped.jsonl --quiet
  "${train[@]}" --steps "$steps" --log through.jsonl --quiet
  same_losses through stopped
}

a_killed_rank_ends_the_job() {
  SGTC_SECRET=x srun -N2 -n4 "${train[@]}" --steps 1000000 --log killed.jsonl --quiet 2>errors &
  local job=$! begin
  wait_for_step killed.jsonl 20
  begin=$SECONDS
  kill -KILL "$(process_of 3)"
  wait "$job" || true
  [ $((SECONDS - begin)) -le 5 ]
  [ "$(grep -c '^error: rank 3 (host node2, process .* was lost: its connection ended' errors)" = 3 ]
}

two_nodes_compute_what_one_does
a_stopped_job_goes_on
a_killed_rank_ends_the_job
