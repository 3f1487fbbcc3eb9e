#!/usr/bin/env bash
# The GPT of byte-gpt on four ranks of this machine, two pipeline stages of two replicas each, and on
# one rank, with the same micro-batches: the losses agree.
source "$(dirname "$0")/../common/sample.sh"

"$python" "$root/samples/byte-gpt/prepare.py" .
"$sgtc_model" gpt2 --layers 4 --width 64 --heads 4 --vocab 256 --seq 64 --context 64 --batch 4 \
  -o gpt.onnx
# Four micro-batches of four rows in each step, whatever the mesh.
options=(--optimizer adamw --weight-decay 0.1 --clip-norm 1)
"$sgtc" gpt.onnx -o train-2x2 --mesh 2x2 --micro-batches 2 "${options[@]}" --emit=exe,plan=plan.txt
"$sgtc" gpt.onnx -o train-1x1 --mesh 1x1 --micro-batches 4 "${options[@]}"
awk '/schedule train/ {show = 1} /^$/ {show = 0} show' plan.txt

rm -f log-*.jsonl
for mesh in 2x2 1x1; do
  ./train-$mesh --tokens input_ids,labels=train.bin --shuffle --steps 200 --lr 1e-3 --warmup 20 \
    --log log-$mesh.jsonl --eval input_ids,labels=held_out.bin --quiet
done
"$python" "$sample/compare.py" log-2x2.jsonl log-1x1.jsonl
echo "on a cluster: srun -n 4 $work/train-2x2 --tokens input_ids,labels=$work/train.bin --steps 200"
