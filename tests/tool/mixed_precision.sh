#!/usr/bin/env bash
# Mixed precision trains near float32, as near as PyTorch under autocast.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/mixed_precision.py"
