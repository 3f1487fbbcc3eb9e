#!/usr/bin/env bash
# The loop kernels of models compile to PTX for every GPU, with no atomic operations but the stamps of
# traces, and ptxas takes them without spills. Whole models compile too.
set -euo pipefail
"$SGTC_PYTHON" -c "import numpy, onnx" 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "$1" >&2
  exit 1
}

"$SGTC_MODEL" mlp -o mlp.onnx --batch 8
"$SGTC_MODEL" cnn -o cnn.onnx --batch 4
"$SGTC_MODEL" gpt2 -o gpt2.onnx --layers 2 --width 96 --heads 3 --vocab 211 --seq 40 --dropout 0.1 \
  --batch 2

# "y = w x + b" and its update are loops alone.
"$SGTC_PYTHON" - <<'PYTHON'
import numpy as np
from onnx import numpy_helper, parser

model = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
  scaling (float[8, 48] x, float[8, 48] y) => (float L) {
    m = Mul(x, w) z = Add(m, b) d = Sub(z, y) s = Mul(d, d) L = ReduceMean <keepdims = 0>(s) }""")
for name in ("w", "b"):
    values = np.random.default_rng(1).normal(size=48).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, name))
open("loops.onnx", "wb").write(model.SerializeToString())
PYTHON

for target in sm_80 sm_90a; do
  "$SGTC" loops.onnx --target "$target" --clip-norm 1 --emit=ptx=loops.ptx
  grep -q "^.target $target" loops.ptx || fail "loops.ptx is not for $target"
  grep -vF 'atom.global.min.u64' loops.ptx >without_stamps.ptx
  ! grep -qE '^\s*call|local_depot|atom\.|\sred\.|approx|\.ftz' without_stamps.ptx ||
    fail "loops.ptx: calls, local memory, atomic or approximate operations"
  [ -n "${SGTC_PTXAS:-}" ] || continue
  # One file per kernel; before the first there are comments.
  csplit -s -f part. -b %04d.ptx loops.ptx '/^\.version/' '{*}'
  rm part.0000.ptx
  for part in part.*.ptx; do
    "$SGTC_PTXAS" -arch="$target" --fmad=false -v "$part" -o part.cubin 2>report ||
      fail "$target: $(cat report)"
    grep -q '0 bytes spill stores, 0 bytes spill loads' report || fail "$target: $(cat report)"
  done
  rm part.*
done

# Whole models, with the written kernels of products, convolutions, pools and attention.
whole() {
  local model=$1 target=$2
  shift 2
  "$SGTC" "$model.onnx" --target "$target" --emit=ptx="$model.ptx" "$@"
  grep -q "^.target $target" "$model.ptx" || fail "$model.ptx is not for $target"
  [ -z "${SGTC_PTXAS:-}" ] || "$SGTC" "$model.onnx" --target "$target" --ptxas "$SGTC_PTXAS" -o train "$@"
}
whole mlp sm_80
whole cnn sm_90a
whole gpt2 sm_90a --precision bf16
grep -q 'wgmma' gpt2.ptx || fail "gpt2.ptx: no product on Hopper's tensor cores"
