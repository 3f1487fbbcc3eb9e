#!/usr/bin/env bash
# The launch of a program on two nodes of a real Slurm cluster, with launch_probe as the program.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib_slurm.sh"
enter_cluster "$@"

probe=$SGTC_LAUNCH_PROBE
work=$cluster/work
mkdir "$work"
cd "$work"
export PROBE_RANKS=4 SGTC_LOST_AFTER_MS=2000

fail() {
  echo "FAILED: $1" >&2
  cat output errors >&2
  exit 1
}

# expect CODE SECONDS COMMAND...: the exit code and the longest duration of a command, whose output
# goes to the files output and errors.
expect() {
  local code=$1 seconds=$2 begin=$SECONDS found=0
  shift 2
  "$@" >output 2>errors || found=$?
  [ "$found" = "$code" ] || fail "$*: exit code $found, expected $code"
  [ $((SECONDS - begin)) -le "$seconds" ] || fail "$*: took longer than $seconds s"
}

# says FILE COUNT PATTERN: so many lines of the file match.
says() {
  local found
  found=$(grep -cE "$3" "$1" || true)
  [ "$found" = "$2" ] || fail "$1 has $found lines like '$3', expected $2"
}

wait_for() {
  local attempt
  for attempt in {1..100}; do
    grep -qE "$2" "$1" 2>/dev/null && return
    sleep 0.1
  done
  fail "$1 has no line like '$2'"
}

# The process of a rank that runs in the background with its output in the file output.
process_of() {
  wait_for output "^joined as $1 of 4"
  sed -n "s/^joined as $1 of 4, process \([0-9]*\),.*/\1/p" output
}

two_nodes_with_a_secret() {
  SGTC_SECRET=x expect 0 10 srun -N2 -n4 "$probe" --steps 5
  says output 4 '^joined as [0-3] of 4'
  says output 1 '^member 0 . node 0 . local rank 0 of 2 .* host node1'
  says output 1 '^member 3 . node 1 . local rank 1 of 2 .* host node2'
  says output 1 '^master node1:[0-9]+$'
  says output 4 '^step 5$'
}

the_secret_in_the_checkpoint_folder() {
  expect 0 10 srun -N2 -n4 "$probe" --steps 2 --checkpoint "$work/checkpoints"
  [ "$(stat -c %a "$work/checkpoints/.secret")" = 600 ] || fail "the secret is not closed"
}

several_nodes_need_a_secret() {
  expect 1 5 srun -N2 -n4 "$probe" --steps 5
  says errors 4 'has no shared secret; give all ranks'
}

one_node_needs_none() {
  expect 0 10 srun -N1 -n4 "$probe" --steps 5
  says output 4 '^step 5$'
  [ -z "$(ls /tmp/sgtc-*.secret /run/user/*/sgtc-*.secret 2>/dev/null)" ] || fail "a secret is left"
}

two_jobs_on_one_node() {
  srun -N1 -n4 -w node1 "$probe" --steps 40 >other 2>&1 &
  local other=$!
  PROBE_STEP_MS=20 expect 0 10 srun -N1 -n4 -w node1 "$probe" --steps 40
  wait "$other" || fail "the other job"
}

the_wrong_number_of_tasks() {
  SGTC_SECRET=x expect 1 5 srun -N2 -n3 "$probe" --steps 5
  says errors 3 'compiled for 4, started by Slurm with 3'
}

a_batch_script_without_srun() {
  cat >batch.sh <<END
#!/bin/bash
"$probe" --steps 5
END
  # When a batch job begins is up to Slurm.
  expect 1 60 sbatch --wait -N2 -n4 -o batch.txt batch.sh
  grep -q 'start the program with srun' batch.txt || fail "no advice: $(cat batch.txt)"
}

a_killed_rank() {
  export SGTC_SECRET=x PROBE_STEP_MS=20
  # What an earlier job wrote must not be taken for this one's.
  : >output
  srun -N2 -n4 "$probe" --steps 100000 >output 2>errors &
  local job=$! code=0
  wait_for output '^step 3$'
  kill -KILL "$(process_of "$1")"
  wait "$job" || code=$?
  [ "$code" -ge 128 ] || fail "exit code $code after rank $1 was killed"
  says errors 3 "^error: rank $1 \(host node[12], process [0-9]+\): was lost: its connection ended"
}

a_node_that_is_cut_off() {
  : >output
  srun -N2 -n4 "$probe" --steps 100000 >output 2>errors &
  local job=$!
  wait_for output '^step 3$'
  local ranks=("$(process_of 0)" "$(process_of 1)" "$(process_of 2)" "$(process_of 3)")
  ip link set link2 down
  local attempt
  for attempt in {1..80}; do
    kill -0 "${ranks[@]}" 2>/dev/null || break
    sleep 0.1
  done
  local rank
  for rank in "${ranks[@]}"; do
    ! kill -0 "$rank" 2>/dev/null || fail "process $rank goes on without the other node"
  done
  ip link set link2 up
  wait "$job" || true
  says errors 2 '^error: rank [23] .*host node2.* was lost: silent for'
}

a_signal_stops_all_ranks() {
  : >output
  srun -N2 -n4 "$probe" --steps 100000 >output 2>errors &
  local job=$! code=0
  wait_for output '^step 3$'
  scancel --signal=TERM "$(running_job).0"
  wait "$job" || code=$?
  [ "$code" = 143 ] || fail "exit code $code after a signal"
  says output 4 '^stopped before step '
  [ "$(grep '^stopped' output | sort -u | wc -l)" = 1 ] || fail "the ranks stopped apart"
}

two_nodes_with_a_secret
the_secret_in_the_checkpoint_folder
several_nodes_need_a_secret
one_node_needs_none
two_jobs_on_one_node
the_wrong_number_of_tasks
a_batch_script_without_srun
a_killed_rank 3
a_killed_rank 0
a_signal_stops_all_ranks
a_node_that_is_cut_off
