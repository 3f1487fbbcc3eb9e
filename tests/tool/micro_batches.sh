#!/usr/bin/env bash
# Micro-batches train like one large batch; other losses are refused.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/micro_batches.py"
