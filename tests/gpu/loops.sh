#!/usr/bin/env bash
# Loop kernels on a Hopper GPU against the interpreter; skipped without one.
set -euo pipefail
[ -n "${SGTC_PTXAS:-}" ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$SGTC_GPU_PROGRAMS/pack_loops" "$folder"
"$SGTC_GPU_PROGRAMS/gpu_loops_check" "$folder"
