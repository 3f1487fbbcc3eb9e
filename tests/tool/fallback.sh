#!/usr/bin/env bash
# Operators without kernel train with --on-unsupported=fallback, and are refused without.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/fallback.py"
