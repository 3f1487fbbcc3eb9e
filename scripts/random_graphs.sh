#!/usr/bin/env bash
# The long form of two tests: random graphs with their gradients against an interpreter in double,
# and random models with micro-batches and in pipelines against one batch on one rank.
#
#   scripts/random_graphs.sh [GRAPHS] [MODELS] [FIRST]
#
# GRAPHS (default 2000) from number FIRST (default 1) on, which take a second each, so that several
# runs can share them; MODELS: 40, or 0 for none. Needs the release build (scripts/build.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SGTC_RANDOM_GRAPHS=${1:-2000} SGTC_FIRST_RANDOM_GRAPH=${3:-1} build/bin/test_codegen \
  "random graphs compute what an interpreter in double computes"
[ "${2:-40}" -gt 0 ] || exit 0
SGTC=$PWD/build/bin/sgtc SGTC_MODEL=$PWD/build/bin/sgtc-model \
  SGTC_PYTHON=$PWD/build/venv/bin/python SGTC_RANDOM_TRAININGS=${2:-40} \
  bash tests/tool/random_models.sh
