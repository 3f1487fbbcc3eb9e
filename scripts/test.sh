#!/usr/bin/env bash
# Builds (installing what is missing) and runs the tests that need no GPU: the cpu tier.
#
#   scripts/test.sh [PRESET] [CTEST-OPTION]...    see scripts/build.sh for the presets
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=release
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  preset=$1
  shift
fi
# A Slurm cluster of two nodes for tests/tool/slurm_cluster.sh, a browser for tests/tool/page.sh.
export SGTC_MORE_PACKAGES="slurm-wlm munge iproute2 chromium"
export SGTC_MORE_REQUIREMENTS=scripts/test-requirements.txt
bash scripts/build.sh "$preset"
folder=build
[ "$preset" = release ] || folder=build/$preset
exec ctest --test-dir "$folder" -L cpu --output-on-failure --no-tests=error -j2 "$@"
