#!/usr/bin/env bash
# Checks the form of the sources: formatting of all, and clang-tidy on some.
#
#   scripts/lint.sh                 formatting alone
#   scripts/lint.sh --fix           formats
#   scripts/lint.sh --tidy [FILE]…  also clang-tidy on the given files, or on those that differ from
#                                   the main branch; needs a build folder (scripts/build.sh)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z 'compiler/*.cc' 'compiler/*.h' 'runtime/*.cc' 'runtime/*.h' 'kernels/*.cc' \
  'kernels/*.h' 'models/*.cc' 'models/*.h' 'tests/*.cc' 'tests/*.h' 'tests/*.c' >/tmp/sgtc-lint.$$
trap 'rm -f /tmp/sgtc-lint.$$' EXIT
if [ "${1:-}" = --fix ]; then
  xargs -0 clang-format-19 -i </tmp/sgtc-lint.$$
  exit
fi
xargs -0 clang-format-19 --dry-run --Werror </tmp/sgtc-lint.$$
if [ "${1:-}" = --tidy ]; then
  shift
  [ $# -gt 0 ] || mapfile -t changed < <(git diff --name-only --diff-filter=d main -- '*.cc')
  clang-tidy-19 --quiet -p build "${@:-${changed[@]}}"
fi
