#!/usr/bin/env bash
# Bad models, options, feeds and files are refused with the documented exit codes and messages.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/bad_input.py"
