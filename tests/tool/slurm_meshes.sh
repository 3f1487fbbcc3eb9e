#!/usr/bin/env bash
# Meshes over two Slurm nodes against one rank, bit for bit where they promise it.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
source "$(dirname "${BASH_SOURCE[0]}")/lib_slurm.sh"
enter_cluster "$@"
TMPDIR=$cluster "$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/slurm_meshes.py"
