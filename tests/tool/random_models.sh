#!/usr/bin/env bash
# Random training graphs with micro-batches and in pipelines.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/random_models.py"
