#!/usr/bin/env bash
# The stored nights as a static site in SITE (public), for any server of files. Arguments are those
# of `hybridwatch site` (--help).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
"${MAKE:-make}" --silent lab
exec .venv/bin/hybridwatch site "${SITE:-public}" "$@"
