# Sourced by run.sh of each sample. Sets
#   root     the project's folder
#   work     where the sample leaves its files: build/samples/NAME
#   sgtc, sgtc_model    the tools; built now if they are missing
#   python   a Python with numpy
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sample=$(cd "$(dirname "$0")" && pwd)
work=$root/build/samples/$(basename "$sample")
sgtc=${SGTC:-$root/build/bin/sgtc}
sgtc_model=${SGTC_MODEL:-$root/build/bin/sgtc-model}
python=${SGTC_PYTHON:-$root/build/venv/bin/python}
[ -x "$sgtc" ] && [ -x "$sgtc_model" ] && [ -x "$python" ] || bash "$root/scripts/build.sh"
mkdir -p "$work"
cd "$work"

# python_with PACKAGE: makes `python` one that has the package, in an environment of the samples.
python_with() {
  "$python" -c "import importlib.metadata as m; m.version('$1')" 2>/dev/null && return
  local venv=$root/build/samples/venv
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  python=$venv/bin/python
  "$python" -m pip install -q --disable-pip-version-check "$1"
}
