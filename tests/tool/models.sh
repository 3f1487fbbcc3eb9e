#!/usr/bin/env bash
# Models of sgtc-model have PyTorch's losses.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/models.py"
