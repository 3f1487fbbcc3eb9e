#!/usr/bin/env bash
# ONNX's own node tests: the forward pass of each operator.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
[ -x "${SGTC_TEST_IMPORT:-}" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$SGTC_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/../import/write_node_data.py" "$work"
SGTC_ONNX_NODE_DATA=$work "$SGTC_TEST_IMPORT" "[node-data]"
