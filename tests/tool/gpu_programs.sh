#!/usr/bin/env bash
# Programs for GPUs on a machine without one.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/gpu_programs.py"
