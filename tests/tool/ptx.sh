#!/usr/bin/env bash
# The loop kernels of models compile to PTX for every GPU, ptxas takes them without spills, and what
# is not there for GPUs yet is refused by name.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "$1" >&2
  exit 1
}

# Succeeds where sgtc fails with a message that holds the text.
refused() {
  local text=$1
  shift
  ! "$SGTC" "$@" >out 2>messages || fail "sgtc $*: accepted"
  grep -qF -- "$text" messages || fail "sgtc $*: $(cat messages)"
}

"$SGTC_MODEL" mlp -o mlp.onnx --batch 8
"$SGTC_MODEL" cnn -o cnn.onnx --batch 4
"$SGTC_MODEL" gpt2 -o gpt2.onnx --layers 2 --width 96 --heads 3 --vocab 211 --seq 40 --dropout 0.1 \
  --batch 2

for model in mlp cnn gpt2; do
  for target in sm_80 sm_90a; do
    refused "these kernels have no code for $target yet:" \
      "$model.onnx" --target "$target" --clip-norm 1 --emit=ptx="$model.ptx"
    grep -q 'matmul (' messages || fail "$model: $(cat messages)"
    grep -q "^.target $target" "$model.ptx" || fail "$model.ptx is not for $target"
    ! grep -qE '^\s*call|local_depot|atom\.|approx|\.ftz' "$model.ptx" ||
      fail "$model.ptx: calls, local memory, atomic or approximate operations"
    [ -n "${SGTC_PTXAS:-}" ] || continue
    # One file per kernel; before the first there are comments.
    csplit -s -f part. -b %04d.ptx "$model.ptx" '/^\.version/' '{*}'
    rm part.0000.ptx
    for part in part.*.ptx; do
      "$SGTC_PTXAS" -arch="$target" --fmad=false -v "$part" -o part.cubin 2>report ||
        fail "$model, $target: $(cat report)"
      grep -q '0 bytes spill stores, 0 bytes spill loads' report ||
        fail "$model, $target: $(cat report)"
    done
    rm part.*
  done
done

refused "there are no executables for GPUs yet" mlp.onnx --target sm_90a -o train
[ ! -e train ] || fail "an executable was written"
refused "add --target sm_90a" mlp.onnx --emit=ptx
