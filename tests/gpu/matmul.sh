#!/usr/bin/env bash
# Matrix products on a Hopper GPU against references; skipped without one.
set -euo pipefail
[ -f "$SGTC_GPU_FOLDER/plain.cubin" ] || exit 77
exec "$SGTC_GPU_PROGRAMS/gpu_matmul_check" "$SGTC_GPU_FOLDER"
