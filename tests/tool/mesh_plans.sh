#!/usr/bin/env bash
# Every model that PyTorch exported gets a plan for pipelines and replicas that the checker accepts.
set -euo pipefail
[ -n "${SGTC_SHARED:-}" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in "$SGTC_SHARED"/data/exported/*/*.onnx; do
  # Losses that are no sums over samples, and a model that does not compile yet.
  case $model in *torch_pinn_like* | *torch_unet_tiny*) continue ;; esac
  for settings in "2x2 3 1f1b" "4x1 2 gpipe"; do
    read -r mesh micro_batches schedule <<<"$settings"
    "$SGTC" "$model" --mesh "$mesh" --micro-batches "$micro_batches" --schedule "$schedule" \
      --emit=plan-json="$work/plan.json" 2>"$work/messages" || { cat "$work/messages"; exit 1; }
    grep -q '"stages":\[1\]' "$work/plan.json"
  done
done
