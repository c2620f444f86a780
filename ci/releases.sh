#!/usr/bin/env bash
# A history of engine releases, oldest first: bash ci/releases.sh [ASV RUN ARGUMENT]...
# RELEASES names the builds; those of engine/builds.toml that run on a CPU when not set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
known=$(ci/release-builds.sh)
RELEASES=${RELEASES:-$known}

# asv draws commits, so each release is one. Author and dates are fixed, hence the hashes: numbers from
# two machines meet. The dates say nothing but the order.
export GIT_AUTHOR_NAME=hybridwatch GIT_COMMITTER_NAME=hybridwatch
export GIT_AUTHOR_EMAIL=hybridwatch@localhost GIT_COMMITTER_EMAIL=hybridwatch@localhost
rm -rf .asv/releases
git init --quiet --initial-branch=main .asv/releases
day=0
for build in $known; do
    day=$((day + 1))
    export GIT_AUTHOR_DATE="@$((day * 86400)) +0000" GIT_COMMITTER_DATE="@$((day * 86400)) +0000"
    git -C .asv/releases -c commit.gpgsign=false commit --quiet --allow-empty --message="$build"
    git -C .asv/releases -c tag.gpgsign=false tag "$build"
done
[ "${1:-}" != --repository-only ] || exit 0

for build in $RELEASES; do
    .venv/bin/hybridwatch engine install "$build"
    # Status 2: a benchmark failed, as scenarios do which a release cannot run; the others count.
    HYBRIDWATCH_BUILD=$build .venv/bin/asv run --config ci/asv.releases.conf.json --python=same \
        --set-commit-hash "$build" --show-stderr "$@" || [ $? -eq 2 ]
done
.venv/bin/asv publish --config ci/asv.releases.conf.json --no-pull
