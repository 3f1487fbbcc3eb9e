#!/usr/bin/env bash
# The GPU suite: checks and measurements on one Hopper GPU.
#
#   scripts/gpu.sh                 build here and run here
#   scripts/gpu.sh pack FOLDER     build here and gather in FOLDER what the other machine needs
#   bash FOLDER/gpu.sh run FOLDER  run there: no compiler and no CUDA toolkit are needed
#
# PyTorch's attention is measured where PyTorch is. cuBLAS, to measure beside, is looked for in $CUBLAS, in the Python packages and in the linker's
# cache; without it only the kernels are measured.
set -euo pipefail

pack() {
  local root
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  cmake --build "$root/build" -j2 --target gpu_kernels gpu_{matmul,attention}_{check,bench} \
    gpu_training_check pack_loops gpu_loops_check
  if [ ! -e "$root/build/gpu/plain.cubin" ]; then
    echo "$root/build/gpu has no cubins: ptxas (CUDA toolkit) was not found when the build was configured" >&2
    exit 1
  fi
  mkdir -p "$1"
  cp "$root"/build/gpu/*.cubin "$root"/build/bin/gpu_{matmul,attention}_{check,bench} \
    "$root"/build/bin/gpu_{training,loops}_check "$root"/build/gpu/regression.ptx \
    "$root/scripts/gpu.sh" "$root/tests/gpu/attention_peers.py" "$1"
  "$root/build/bin/pack_loops" "$1/loops"
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

run() {
  local folder=$1 cublas
  shift
  "$folder/gpu_training_check" "$folder"
  "$folder/gpu_matmul_check" "$folder"
  "$folder/gpu_attention_check" "$folder"
  "$folder/gpu_loops_check" "$folder/loops"
  "$folder/gpu_loops_check" "$folder/loops" --measure
  cublas=$(find_cublas)
  "$folder/gpu_matmul_bench" "$folder" ${cublas:+--cublas "$cublas"} "$@"
  "$folder/gpu_attention_bench" "$folder"
  python3 "$folder/attention_peers.py" || echo "PyTorch's attention was not measured"
}

case "${1:-}" in
  pack) pack "$2" ;;
  run)
    shift
    run "$@"
    ;;
  "")
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    pack "$folder"
    run "$folder"
    ;;
  *)
    echo "usage: $0 [pack FOLDER | run FOLDER [gpu_matmul_bench OPTION]...]" >&2
    exit 2
    ;;
esac
