#!/usr/bin/env bash
# The final weights of models exported by PyTorch are PyTorch's, for SGD and AdamW.
set -euo pipefail
[ -n "${SGTC_SHARED:-}" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$SGTC_PYTHON" "$(dirname "$0")/final_weights.py" "$SGTC" "$SGTC_SHARED/data/exported" "$work"
