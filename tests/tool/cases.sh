#!/usr/bin/env bash
# Small graphs and scenarios that other tools got wrong: losses, gradients and messages.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
folder=$(dirname "${BASH_SOURCE[0]}")
"$SGTC_PYTHON" "$folder/import_cases.py"
"$SGTC_PYTHON" "$folder/training_cases.py"
"$SGTC_PYTHON" "$folder/attention_cases.py"
