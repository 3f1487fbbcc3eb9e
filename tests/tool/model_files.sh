#!/usr/bin/env bash
# What sgtc-model writes is valid ONNX, and its GPT-2 computes GPT-2's loss.
set -euo pipefail
reference=$(dirname "${BASH_SOURCE[0]}")/reference
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$SGTC_MODEL" mlp --batch rows --hidden 7,5 -o "$work/mlp.onnx"
"$SGTC_MODEL" cnn --batch 3 --channels 2 --size 11 -o "$work/cnn.onnx"
"$SGTC_MODEL" gpt2-124m --batch rows --seq 64 -o "$work/gpt2-124m.onnx"
"$SGTC_MODEL" gpt2 --layers 1 --width 8 --heads 2 --dropout 0.1 -o "$work/dropout.onnx"
for model in resnet18 resnet50 llama-1b bert-base vit-b16; do
  "$SGTC_MODEL" "$model" --batch rows -o "$work/$model.onnx"
done
for model in gpt2-124m llama-1b bert-base vit-b16; do
  "$SGTC_MODEL" "$model" --batch rows --opset 23 -o "$work/$model-23.onnx"
done
"$SGTC_PYTHON" "$reference/model_files.py" "$work"/*.onnx

"$SGTC_MODEL" gpt2 --batch rows --layers 2 --width 24 --heads 3 --vocab 61 --seq 12 --context 16 \
  -o "$work/tiny.onnx"
"$SGTC_PYTHON" "$reference/model_files.py" --gpt2 "$work/tiny.onnx"
