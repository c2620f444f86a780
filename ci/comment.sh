#!/usr/bin/env bash
# The trusted half: takes the bundle of an untrusted run, refuses what is not records, judges and
# posts. Of the bundle, only the number of the pull request is believed, and only if the commit that
# GitHub says was measured is one of that pull request's.
#
#   GITHUB_TOKEN       actions: read, checks: write, pull-requests: write
#   GITHUB_REPOSITORY  owner/name
#   RUN                id of the untrusted workflow run
#   HEAD               the commit that it ran on, from the event, never from the bundle
#   DASHBOARD          address of a dashboard that has the bundle's records, for a link [no link]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${GITHUB_TOKEN:?}" "${GITHUB_REPOSITORY:?}" "${RUN:?}" "${HEAD:?}"
bin=.venv-bot/bin # `make bot`
test -d "$bin" || bin=.venv/bin
most_bytes=67108864
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

bundle=$(gh api "repos/$GITHUB_REPOSITORY/actions/runs/$RUN/artifacts?name=hybridwatch" \
    --jq '.artifacts[0].id // empty')
test -n "$bundle" || { echo "run $RUN sent no bundle: nothing was measured" >&2; exit 1; }
gh api "repos/$GITHUB_REPOSITORY/actions/artifacts/$bundle/zip" |
    head -c "$most_bytes" >"$scratch/bundle.zip"
number=$("$bin/python" -P -m hybridwatch.integrations.github.record_bundle "$scratch/bundle.zip" "$scratch/results")
"$bin/hybridwatch" comment --repo "$GITHUB_REPOSITORY" --pr "$number" --head "$HEAD" \
    --results "$scratch/results" ${DASHBOARD:+--dashboard "$DASHBOARD"}
