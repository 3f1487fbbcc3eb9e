#!/usr/bin/env bash
# Executables are reproducible, repeat bit for bit, keep to their plan's memory and stand alone.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/contract.py"
