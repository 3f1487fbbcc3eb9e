#!/usr/bin/env bash
# ONNX's own node tests and random ones: the forward pass of each operator and its gradients.
set -euo pipefail
"$SGTC_PYTHON" -c 'import numpy, onnx' 2>/dev/null || exit 77
[ -x "${SGTC_TEST_IMPORT:-}" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
import=$(dirname "${BASH_SOURCE[0]}")/../import
"$SGTC_PYTHON" "$import/write_node_data.py" "$work/node"
"$SGTC_PYTHON" "$import/write_random_data.py" "$work/random" "${SGTC_RANDOM_MODELS:-400}" 1
SGTC_ONNX_NODE_DATA=$work/node SGTC_RANDOM_NODE_DATA=$work/random "$SGTC_TEST_IMPORT" "[node-data]"
