#!/usr/bin/env bash
# Attention on a Hopper GPU against references; skipped without one.
set -euo pipefail
[ -f "$SGTC_GPU_FOLDER/attention.cubin" ] || exit 77
exec "$SGTC_GPU_PROGRAMS/gpu_attention_check" "$SGTC_GPU_FOLDER"
