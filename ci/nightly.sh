#!/usr/bin/env bash
# One night: environments, then `hybridwatch nightly`, which locks, bounds, logs and goes on where an
# interrupted night was. Arguments are its own (--help). BUILD is watched, BASELINE measured in turn
# with it; without BASELINE it is an A/A night, without BUILD one of the newest release for ACCELERATOR
# (cpu, cuda).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${BUILD:-$(ci/release-builds.sh "${ACCELERATOR:-cpu}" | tail -n 1)}
BASELINE=${BASELINE:-$BUILD}

mkdir -p .asv
exec 9> .asv/nightly.lock # two at a time would make the same environments; later on, the verb has a lock
flock --nonblock 9 || { echo "nightly: another night is getting ready here" >&2; exit 2; }
for label in "$BUILD" "$BASELINE"; do
    # A build with switched fixes has the environment of the plain one.
    "${MAKE:-make}" --silent engine BUILD="${label%%[~+@]*}"
done
exec .venv/bin/hybridwatch nightly --build "$BUILD" --baseline "$BASELINE" "$@" 9>&-
