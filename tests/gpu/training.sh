#!/usr/bin/env bash
# A program trained on a Hopper GPU beside the same one on the CPU; skipped without a GPU.
set -euo pipefail
exec "$SGTC_GPU_PROGRAMS/gpu_training_check" "$SGTC_GPU_FOLDER"
