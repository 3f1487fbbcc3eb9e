#!/usr/bin/env bash
# GPT-2 as the transformers package defines it, exported from PyTorch and trained without it.
# Set SGTC_PYTHON to a Python that has torch, transformers and onnxscript.
source "$(dirname "$0")/../common/sample.sh"

if ! "$python" -c 'import torch, transformers, onnxscript' 2>/dev/null; then
  echo "run.sh: $python lacks torch, transformers or onnxscript; install them there (pip install" \
       "torch transformers onnxscript) or set SGTC_PYTHON to a Python that has them" >&2
  exit 1
fi
export=(--layers 2 --width 128 --heads 4 --vocab 256 --seq 64 --batch 8 -o gpt2.onnx)
lr=1e-3

"$python" "$root/samples/byte-gpt/prepare.py" .
"$python" "$root/models/export/export_gpt2.py" "${export[@]}"
"$sgtc" gpt2.onnx -o train --optimizer adamw --weight-decay 0
rm -f log.jsonl
./train --tokens input_ids,labels=train.bin --steps 50 --lr "$lr" --quiet --log log.jsonl
"$python" "$sample/compare.py" log.jsonl train.bin "$lr" "${export[@]}"
