#!/usr/bin/env bash
# ONNX Runtime's training artifacts train as ONNX Runtime does.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
[ -d "${SGTC_SHARED:-}/data/ort_training_api" ] || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/ort_artifacts.py"
