#!/usr/bin/env bash
# The written GPU kernels, as PTX, use the tensor cores and the copy engine, with the tile visitor
# and everything else inlined; and the build refuses kernels that ptxas finds slow.
set -euo pipefail

fail() {
  echo "$1" >&2
  exit 1
}

count=0
for ptx in "$SGTC_GPU_FOLDER"/*.ptx; do
  case "$ptx" in */helpers.ptx | */regression.ptx) continue ;; esac
  count=$((count + 1))
  grep -q 'wgmma.mma_async.sync.aligned.m64n[0-9]*k16.f32.bf16.bf16' "$ptx" || fail "$ptx: no wgmma"
  grep -q 'cp.async.bulk.tensor.[34]d' "$ptx" || fail "$ptx: no bulk tensor copies"
  grep -q 'setmaxnreg' "$ptx" || fail "$ptx: no change of registers"
  ! grep -qE "^\s*call|^\s*\.local|^\s*\.extern \.func" "$ptx" || fail "$ptx: calls or local memory"
done
[ "$count" -ge 8 ] || fail "$SGTC_GPU_FOLDER: only $count files"

[ -n "${SGTC_PTXAS:-}" ] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
assemble() {
  "$SGTC_CMAKE" -DPTXAS="$SGTC_PTXAS" -DREGISTERS=168 -DPTX="$1" -DCUBIN="$folder/out.cubin" \
    -P "$(dirname "${BASH_SOURCE[0]}")/../../cmake/assemble_ptx.cmake" 2>&1
}
assemble "$SGTC_GPU_FOLDER/bias.ptx" || fail "bias.ptx does not assemble"
# Accumulators that are touched between products serialise them.
sed '0,/wgmma.commit_group/s//wgmma.wait_group.sync.aligned 0; wgmma.commit_group/; /wgmma.fence/d' \
  "$SGTC_GPU_FOLDER/bias.ptx" >"$folder/slow.ptx"
! report=$(assemble "$folder/slow.ptx") || fail "a kernel with serialised products was accepted"
grep -q C75 <<<"$report" || fail "no message C75xx: $report"
[ ! -e "$folder/out.cubin" ] || fail "a cubin of a slow kernel was left"
