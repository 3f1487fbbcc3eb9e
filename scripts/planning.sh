#!/usr/bin/env bash
# How long it takes to plan and simulate a large model on a large mesh: Llama 3 in its size of 70B,
# on 8 stages of 64 replicas of H200s, with the times of the passes. Needs build/bin
# (scripts/build.sh) and no GPU.
#
#   scripts/planning.sh [SGTC-OPTION]...    for instance --memory 130GiB
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build/bin/sgtc-model llama-70b --seq 8192 --batch 1 -o "$folder/llama.onnx"
time build/bin/sgtc "$folder/llama.onnx" --target sm_90a --precision bf16 --mesh 8x64 \
  --micro-batches 32 --simulate --time-passes -j 2 "$@"
