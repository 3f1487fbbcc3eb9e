#!/usr/bin/env bash
# Prints which part of the import's lines random models run, and which part its tests run.
#
#   scripts/coverage.sh [MUTATIONS] [FOLDER]
#
# MUTATIONS (default 20000) are made of the models in FOLDER (default tests/fuzz/corpus); the tests
# are test_import and ONNX's node tests. Needs the release build (scripts/build.sh), whose other
# folders are taken or found in the compiler's cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mutations=${1:-20000}
folder=${2:-tests/fuzz/corpus}
build=build/coverage
cmake --preset coverage -DSGTC_ONNX_PREFIX="${SGTC_ONNX_PREFIX:-$PWD/build/_onnx}" \
  -DSGTC_PYTHON="$PWD/build/venv/bin/python"
cmake --build "$build" --target check_models test_import

reset() { find "$build" -name '*.gcda' -delete; }

# One line per source file, the least covered first, and their sum.
report() {
  echo "== $1"
  find "$PWD/$build" -name '*.gcda' -exec gcov -n -r -s "$PWD" {} + 2>/dev/null |
    awk -F"['% ]" '
      /^File/ { file = $3 }
      /^Lines executed/ && file ~ /import\/[a-z_]*\.cc$/ {
        split($0, part, /[:%]| of /)
        lines = part[4]; run = part[2] * lines / 100; all += lines; ran += run
        sub(/.*import\//, "", file)
        printf "%6.1f %% of %4d  %s\n", part[2], lines, file | "sort -n"
      }
      /^Lines executed/ { file = "" }
      END { close("sort -n"); printf "%6.1f %% of %4d  in all\n", 100 * ran / all, all }'
}

reset
"$build/bin/check_models" "$folder" "$mutations" 1
report "$mutations random models"
reset
"$build/bin/test_import" >/dev/null
SGTC_PYTHON=$PWD/build/venv/bin/python SGTC_TEST_IMPORT=$PWD/$build/bin/test_import \
  bash tests/tool/node_tests.sh >/dev/null
report "tests of the import"
