#!/usr/bin/env bash
# Fuzzes the compiler from the file to the plan under the address and undefined-behaviour sanitizers.
#
#   scripts/fuzz.sh SECONDS [LIBFUZZER-OPTION]...
#
# Needs the release build (scripts/build.sh), whose codegen and runtime it links; installs
# libclang-rt-19-dev if it is missing. Inputs that add coverage are kept in build/fuzz/corpus, those
# that break the compiler in build/fuzz/found: run build/fuzz/bin/fuzz_models FILE to see one again.
# tests/fuzz/RESULTS.md records what was run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:?seconds}
shift
SGTC_MORE_PACKAGES=libclang-rt-19-dev bash scripts/build.sh release
cmake --preset fuzz -DSGTC_ONNX_PREFIX="${SGTC_ONNX_PREFIX:-$PWD/build/_onnx}" \
  -DSGTC_PYTHON="$PWD/build/venv/bin/python"
cmake --build build/fuzz --target fuzz_models
mkdir -p build/fuzz/corpus build/fuzz/found
# Each input is a file for a moment. No stacks of allocations, a small quarantine and no frames of
# functions on the heap are more than half of the speed; a fault that is run again alone has all of it.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:max_malloc_fill_size=0:detect_stack_use_after_return=0}
# The program itself ends what computes for ten seconds: libFuzzer's limit would count time in which
# it is stopped. Weighing the corpus by rare features (entropic) would take a third of the time, and
# so would naming new functions.
exec build/fuzz/bin/fuzz_models -max_total_time="$seconds" -timeout=86400 -rss_limit_mb=2048 \
  -detect_leaks=0 -entropic=0 -print_funcs=0 -max_len=1024 -print_final_stats=1 \
  -artifact_prefix=build/fuzz/found/ "$@" build/fuzz/corpus tests/fuzz/corpus
