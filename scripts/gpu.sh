#!/usr/bin/env bash
# The GPU suite: checks and measurements on Hopper GPUs.
#
#   scripts/gpu.sh [STAGE]...                   build here and run here
#   scripts/gpu.sh pack FOLDER [STAGE]...       build here, gather in FOLDER what goes to the GPU
#   bash FOLDER/gpu.sh run FOLDER [STAGE]...    run there, without compiler and CUDA toolkit
#
# Stages, all unless named: kernels, programs (beside those for CPUs), models (larger ones beside
# PyTorch too; MODELS names some), benchmark (training steps beside PyTorch), predictions (steps
# beside what was predicted, and profiles measured kernel by kernel), meshes (two GPUs beside one;
# MESHES names others than 1x2 and 2x1; the ranks of pipelines share a GPU that is alone), scaling
# (training steps of replicas beside one; REPLICAS is their number, 2 unless set), memory (GPT-2 XL
# as it is, in 34 GiB, and with everything computed again), sanitizers (the checks of kernels once
# more, under compute-sanitizer; slow). PyTorch is measured where it is.
# NCCL is looked for in the Python packages, then by the linker. cuBLAS, to measure beside, is looked
# for in $CUBLAS, in the Python packages and in the linker's cache; without it only the kernels are
# measured.
set -euo pipefail

readonly all_stages="kernels programs models benchmark predictions meshes scaling memory sanitizers"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

pack_kernels() {
  cmake --build "$root/build" -j2 --target gpu_kernels gpu_{matmul,attention}_{check,bench} \
    gpu_training_check pack_loops gpu_loops_check
  if [ ! -e "$root/build/gpu/plain.cubin" ]; then
    echo "$root/build/gpu has no cubins: ptxas (CUDA toolkit) was not found when the build was configured" >&2
    exit 1
  fi
  cp "$root"/build/gpu/*.cubin "$root"/build/bin/gpu_{matmul,attention}_{check,bench} \
    "$root"/build/bin/gpu_{training,loops}_check "$root"/build/gpu/regression.ptx \
    "$root/tests/gpu/attention_peers.py" "$1"
  "$root/build/bin/pack_loops" "$1/loops"
}

pack_sanitizers() {
  pack_kernels "$1"
}

build_tools() {
  cmake --build "$root/build" -j2 --target sgtc sgtc-model
}

pack_programs() {
  build_tools
  cp "$root/tests/gpu/programs_check.py" "$root/tests/tool/touched_lines.py" "$1"
  SGTC=$root/build/bin/sgtc SGTC_MODEL=$root/build/bin/sgtc-model \
    "$root/build/venv/bin/python" "$root/tests/gpu/pack_programs.py" "$1/programs"
}

pack_models() {
  build_tools
  cp "$root"/tests/gpu/{models_check,torch_models}.py \
    "$root"/tests/tool/{safetensors_file,touched_lines}.py "$1"
  # shellcheck disable=SC2086 # MODELS is a list
  "$root/build/venv/bin/python" "$root/tests/gpu/pack_models.py" "$root/build/bin" "$1/models" \
    ${MODELS:-}
}

# GPT-2 124M with 32 rows per GPU: FILE VOCABULARY MESH
compile_gpt2() {
  "$root/build/bin/sgtc-model" gpt2-124m --vocab "$2" --batch 32 -o "$1.onnx"
  "$root/build/bin/sgtc" "$1.onnx" --target sm_90a --precision bf16 --optimizer adamw \
    --weight-decay 0.1 --mesh "$3" -o "$1"
  rm "$1.onnx"
}

# Four of its steps: token numbers below both vocabularies.
write_tokens() {
  python3 -c 'import array, random, sys
random.seed(7)
array.array("H", (random.randrange(50257) for _ in range(4 * 32 * 1024 + 1))).tofile(sys.stdout.buffer)' \
    >"$1/tokens.bin"
}

pack_benchmark() {
  build_tools
  cp "$root"/tests/gpu/{training_bench,torch_models,kernel_table}.py "$1"
  local vocab
  for vocab in 50304 50257; do compile_gpt2 "$1/gpt2-$vocab" "$vocab" 1x1; done
  write_tokens "$1"
}

pack_predictions() {
  build_tools
  compile_gpt2 "$1/gpt2-124m" 50304 1x1
  "$root/build/bin/sgtc-model" gpt2-medium --batch 4 -o "$1/gpt2-medium.onnx"
  "$root/build/bin/sgtc" "$1/gpt2-medium.onnx" --target sm_90a --precision bf16 --optimizer adamw \
    --weight-decay 0.1 --micro-batches 8 -o "$1/gpt2-medium"
  rm "$1/gpt2-medium.onnx"
  write_tokens "$1"
}

pack_scaling() {
  build_tools
  cp "$root/tests/gpu/scaling_bench.py" "$1"
  local mesh
  for mesh in 1x1 "1x${REPLICAS:-2}"; do compile_gpt2 "$1/gpt2-$mesh" 50304 "$mesh"; done
  write_tokens "$1"
}

pack_meshes() {
  build_tools
  cp "$root/tests/gpu/mesh_check.py" "$1"
  # shellcheck disable=SC2086 # MESHES is a list
  SGTC=$root/build/bin/sgtc SGTC_MODEL=$root/build/bin/sgtc-model \
    "$root/build/venv/bin/python" "$root/tests/gpu/pack_meshes.py" "$1/meshes" ${MESHES:-}
}

# GPT-2 XL with 8 rows: NAME OPTION...
compile_xl() {
  local output=$1
  shift
  "$root/build/bin/sgtc" "${output%/*}/gpt2-xl.onnx" --target sm_90a --precision bf16 \
    --optimizer adamw --weight-decay 0.1 --hardware h200 "$@" -o "$output"
}

pack_memory() {
  build_tools
  cp "$root/tests/gpu/memory_bench.py" "$1"
  "$root/build/bin/sgtc-model" gpt2-xl --batch 8 -o "$1/gpt2-xl.onnx"
  compile_xl "$1/xl-whole"
  compile_xl "$1/xl-34GiB" --memory 34GiB
  compile_xl "$1/xl-full" --recompute full
  rm "$1/gpt2-xl.onnx"
  write_tokens "$1"
}

find_cublas() {
  if [ -n "${CUBLAS:-}" ]; then
    echo "$CUBLAS"
    return
  fi
  python3 - <<'PYTHON' 2>/dev/null || ldconfig -p | sed -n 's/.*=> \(.*libcublas\.so\.[0-9]*\)$/\1/p' | head -n1
import glob, sys, sysconfig
found = sorted(glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/**/libcublas.so.*", recursive=True))
print(found[0]) if found else sys.exit(1)
PYTHON
}

run_kernels() {
  local folder=$1 cublas
  "$folder/gpu_training_check" "$folder"
  "$folder/gpu_matmul_check" "$folder"
  "$folder/gpu_attention_check" "$folder"
  "$folder/gpu_loops_check" "$folder/loops"
  "$folder/gpu_loops_check" "$folder/loops" --measure
  cublas=$(find_cublas)
  "$folder/gpu_matmul_bench" "$folder" ${cublas:+--cublas "$cublas"}
  "$folder/gpu_attention_bench" "$folder"
  python3 "$folder/attention_peers.py" || echo "PyTorch's attention was not measured"
}

# racecheck does not know the order that mbarriers give to ordinary loads after bulk copies: kernels with
# these, gradients of keys and values, are left to the other tools.
run_sanitizers() {
  local folder=$1 tool check sanitizer
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  for tool in memcheck synccheck; do
    for check in matmul attention; do
      "$sanitizer" --tool "$tool" --error-exitcode 9 "$folder/gpu_${check}_check" "$folder"
    done
  done
  for tool in memcheck initcheck synccheck; do
    "$sanitizer" --tool "$tool" --error-exitcode 9 "$folder/gpu_loops_check" "$folder/loops"
  done
  "$sanitizer" --tool racecheck --error-exitcode 9 \
    --kernel-name-exclude kernel_substring=attention_key_grad \
    "$folder/gpu_loops_check" "$folder/loops"
}

run_programs() {
  python3 "$1/programs_check.py" "$1/programs"
}

run_models() {
  # shellcheck disable=SC2086 # MODELS is a list
  python3 "$1/models_check.py" "$1/models" ${MODELS:-}
}

# Where libnccl.so.2 of the Python packages is.
nccl_folder() {
  python3 - <<'PYTHON' 2>/dev/null || true
import glob, os, sysconfig
found = glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/nccl/lib/libnccl.so.2")
print(os.path.dirname(found[0]) if found else "", end="")
PYTHON
}

# Runs a command that finds NCCL.
with_nccl() {
  local folder
  folder=$(nccl_folder)
  LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

run_meshes() {
  local status=0
  with_nccl python3 "$1/mesh_check.py" "$1/meshes" || status=$?
  [ "$status" = 0 ] || [ "$status" = 77 ]
}

run_scaling() {
  with_nccl python3 "$1/scaling_bench.py" "$1/gpt2-1x1" "$1/tokens.bin" "$1/gpt2-1x${REPLICAS:-2}"
}

run_memory() {
  python3 "$1/memory_bench.py" "$1/tokens.bin" "$1/xl-whole" "$1/xl-34GiB" "$1/xl-full"
}

# Predictions by the preset are in the programs, those by the profiles come from sgtc --hardware.
run_predictions() {
  local name
  for name in gpt2-124m gpt2-medium; do
    "$1/$name" --quiet --tokens "input_ids,labels=$1/tokens.bin" --calibrate="$1/$name.profile.json"
    "$1/$name" --quiet --tokens "input_ids,labels=$1/tokens.bin" --steps 40
  done
}

run_benchmark() {
  local vocab
  for vocab in 50304 50257; do
    python3 "$1/training_bench.py" "$1/gpt2-$vocab" "$1/tokens.bin" --vocab "$vocab"
  done
  # What each kernel takes, beside the least that it could.
  "$1/gpt2-50304" --quiet --tokens "input_ids,labels=$1/tokens.bin" --steps 6 --trace "$1/trace.json"
  "$1/gpt2-50304" --print-plan >"$1/plan.json"
  python3 "$1/kernel_table.py" "$1/trace.json" "$1/plan.json"
}

# pack|run FOLDER [STAGE]...
each_stage() {
  local verb=$1 folder=$2 stage
  shift 2
  # shellcheck disable=SC2086 # a list
  [ $# -gt 0 ] || set -- $all_stages
  for stage in "$@"; do
    case " $all_stages " in
      *" $stage "*) "${verb}_$stage" "$folder" ;;
      *)
        echo "$0: no stage is called $stage; there are $all_stages" >&2
        exit 2
        ;;
    esac
  done
}

pack() {
  mkdir -p "$1"
  each_stage pack "$@"
  cp "$root/scripts/gpu.sh" "$1"
}

case "${1:-}" in
  pack | run)
    verb=$1
    shift
    if [ $# -eq 0 ]; then
      echo "$0 $verb: the folder is missing" >&2
      exit 2
    fi
    if [ "$verb" = pack ]; then pack "$@"; else each_stage run "$@"; fi
    ;;
  -*)
    echo "usage: $0 [[pack | run] FOLDER] [STAGE]..." >&2
    exit 2
    ;;
  *)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    pack "$folder" "$@"
    each_stage run "$folder" "$@"
    ;;
esac
