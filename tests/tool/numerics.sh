#!/usr/bin/env bash
# The rules of docs/numerics.md, folded and computed.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/numerics.py"
