#!/usr/bin/env bash
# The losses of models exported by PyTorch are PyTorch's, for SGD and AdamW.
set -euo pipefail
[ -n "${SGTC_SHARED:-}" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$SGTC_PYTHON" "$(dirname "$0")/exported_models.py" "$SGTC" "$SGTC_SHARED/data/exported" "$work"
