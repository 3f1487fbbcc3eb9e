#!/usr/bin/env bash
# A GPT that predicts the next byte of a text: compile, look at the plan, train, evaluate.
#
#   run.sh [--large]    --large: 6 layers of width 384 and 256 bytes of context, for an hour
source "$(dirname "$0")/../common/sample.sh"

layers=4 width=128 heads=4 seq=64 batch=12 steps=1200
if [ "${1:-}" = --large ]; then
  layers=6 width=384 heads=6 seq=256 batch=16 steps=1000
fi

"$python" "$sample/prepare.py" .
"$sgtc_model" gpt2 --layers $layers --width $width --heads $heads --vocab 256 \
  --seq $seq --context $seq --batch $batch -o gpt.onnx
echo "{\"heads\": $heads, \"seq\": $seq, \"batch\": $batch}" >sizes.json
"$sgtc" gpt.onnx -o train --optimizer adamw --weight-decay 0.1 --betas 0.9,0.99 --clip-norm 1 \
  --emit=exe,plan=plan.txt
rm -f log.jsonl
./train --tokens input_ids,labels=train.bin --shuffle --steps $steps --lr 3e-3 --warmup 100 \
  --decay cosine --log log.jsonl --eval input_ids,labels=held_out.bin --save gpt.safetensors
"$python" "$root/samples/common/loss_curve.py" log.jsonl
echo "plan: $work/plan.txt"
echo "executable, log and weights: $work"
