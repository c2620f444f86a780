#!/usr/bin/env bash
# Fuzzing every night: `hybridwatch fuzz` for MINUTES, with the date as its seed. Arguments are its own
# (--help). A failing case lies in results/fuzz/ as a scenario file, and the status is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${BUILD:-$(ci/release-builds.sh | tail -n 1)}
MINUTES=${MINUTES:-10}

# A build with switched fixes has the environment of the plain one.
"${MAKE:-make}" --silent engine BUILD="${BUILD%%[~+@]*}"
exec .venv/bin/hybridwatch fuzz --build "$BUILD" --minutes "$MINUTES" --seed "$(date -u +%Y%m%d)" --out results/fuzz "$@"
