#!/usr/bin/env bash
# What runs again on small graphs, against the optimum of CP-SAT.
set -euo pipefail
"$SGTC_PYTHON" -c 'import ortools' 2>/dev/null || exit 77
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/recompute_optimum.py"
