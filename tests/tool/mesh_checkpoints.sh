#!/usr/bin/env bash
# Checkpoints of several ranks are complete, survive crashes, and go on with any mesh.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/mesh_checkpoints.py"
