#!/usr/bin/env bash
# A CNN with batch norm on real digits: compile, train, evaluate and predict.
source "$(dirname "$0")/../common/sample.sh"

python_with scikit-learn
"$python" "$root/samples/common/digits.py" . --images --shifts
"$sgtc_model" cnn --size 8 --widths 32,64 --classes 10 --batch 32 -o digits.onnx
"$sgtc" digits.onnx -o train --optimizer adamw
rm -f log.jsonl
./train --data x=train_x.npy --data labels=train_labels.npy --shuffle \
  --steps 1600 --lr 3e-3 --warmup 80 --decay cosine --quiet --log log.jsonl \
  --eval x=held_out_x.npy --eval labels=held_out_labels.npy --eval-every 400 \
  --predict logits=logits.npy --save weights.safetensors
"$python" "$root/samples/common/loss_curve.py" log.jsonl
"$python" "$root/samples/common/accuracy.py" logits.npy held_out_labels.npy
echo "files: $work"
