#!/usr/bin/env bash
# Runs over several ranks agree with runs of one.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/meshes.py"
