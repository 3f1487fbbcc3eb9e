#!/usr/bin/env bash
# Predictions: presets, profiles, reports and timelines.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/simulation.py"
