#!/usr/bin/env bash
# The losses of the models in tests/data/exported are PyTorch's; SGD or AdamW for each file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(dirname "${BASH_SOURCE[0]}")
"$SGTC_PYTHON" "$here/exported_models.py" --one-optimizer "$SGTC" "$here/../data/exported" "$work"
