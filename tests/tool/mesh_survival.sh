#!/usr/bin/env bash
# Ranks are killed and stopped at random moments: jobs end, resume, and lose no bit.
set -euo pipefail
exec "$SGTC_PYTHON" "$(dirname "$0")/mesh_survival.py" 6
