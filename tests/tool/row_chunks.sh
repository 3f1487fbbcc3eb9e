#!/usr/bin/env bash
# Scores that are computed in chunks of rows train alike and take less memory.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/row_chunks.py"
