#!/usr/bin/env bash
# Arenas of all models of sgtc-model: hardly larger than what is live, and all of it is touched.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/arenas.py"
