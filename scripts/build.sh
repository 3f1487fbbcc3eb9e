#!/usr/bin/env bash
# Installs what is missing (Debian 12 or newer), configures and builds.
#
#   scripts/build.sh [PRESET]    PRESET: release (default, into build/), development, asan, tsan,
#                                clang (into build/PRESET); see CMakePresets.json
#
# SGTC_MORE_PACKAGES names packages to install beside those that the build needs, and
# SGTC_MORE_REQUIREMENTS a file of Python packages beside scripts/requirements.txt.
# SGTC_ONNX_PREFIX names a folder where ONNX's C++ library is built once (default build/_onnx).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-release}

packages=(llvm-19-dev liblld-19-dev clang-19 lld-19 libzstd-dev zlib1g-dev libxml2-dev
          libprotobuf-dev protobuf-compiler libcli11-dev nlohmann-json3-dev catch2 libmpfr-dev
          libgloo-dev ccache ninja-build cmake g++ python3 python3-venv
          ${SGTC_MORE_PACKAGES:-})

# Succeeds if the Debian package is installed.
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

install_packages() {
  local missing=() as_root=()
  local package
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    echo "build.sh: these packages of Debian are missing: ${missing[*]}" >&2
    echo "build.sh: apt-get is not here; install their equivalents" >&2
    exit 1
  fi
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  echo "build.sh: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# A Python with numpy for the tests' oracles, apart from the system's.
make_venv() {
  local python=build/venv/bin/python stamp=build/venv/requirements.txt
  local files=(scripts/requirements.txt ${SGTC_MORE_REQUIREMENTS:+"$SGTC_MORE_REQUIREMENTS"})
  cat "${files[@]}" | cmp -s - "$stamp" && return 0
  python3 -m venv build/venv
  "$python" -m pip install -q --disable-pip-version-check "${files[@]/#/--requirement=}"
  cat "${files[@]}" >"$stamp"
}

# Fetches ONNX's source distribution, checked against its hash, unless the prefix has it.
fetch_onnx() {
  local version
  version=$(sed -n 's/^onnx==\([0-9.]*\) .*/\1/p' cmake/onnx-requirements.txt)
  [ ! -e "$SGTC_ONNX_PREFIX/onnx-$version.tar.gz" ] || return 0
  mkdir -p "$SGTC_ONNX_PREFIX"
  build/venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --no-binary onnx \
    --require-hashes -r cmake/onnx-requirements.txt -d "$SGTC_ONNX_PREFIX"
}

export SGTC_ONNX_PREFIX=${SGTC_ONNX_PREFIX:-$PWD/build/_onnx}
install_packages
make_venv
fetch_onnx
cmake --preset "$preset" -DSGTC_ONNX_PREFIX="$SGTC_ONNX_PREFIX" \
  -DSGTC_PYTHON="$PWD/build/venv/bin/python"
cmake --build --preset "$preset"
