#!/usr/bin/env bash
# Builds sgtc (installing what is missing), compiles a GPT that predicts the next byte, trains it
# here for one to two minutes on the licence texts that every Debian machine has, and prints the
# loss curve and where the plan is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/build.sh
exec bash samples/byte-gpt/run.sh
