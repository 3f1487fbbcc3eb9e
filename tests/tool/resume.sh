#!/usr/bin/env bash
# Stopped and killed runs resume to the bits of an uninterrupted one.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/resume.py"
