#!/usr/bin/env bash
# The trusted half again: takes the bundle of ci/measure-command.sh, refuses what is not records, and shows in our
# comment what became of the command.
#
#   GITHUB_TOKEN       actions: read, pull-requests: write
#   GITHUB_REPOSITORY  owner/name
#   RUN                id of the workflow run
#   COMMENT            the comment that asked, from the event
#   PULL_REQUEST       its number, from the event, never from the bundle
#   OUTCOME            how the job that measured ended: success, or else
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${GITHUB_TOKEN:?}" "${GITHUB_REPOSITORY:?}" "${RUN:?}" "${COMMENT:?}" "${PULL_REQUEST:?}" "${OUTCOME:?}"
bin=.venv-bot/bin # `make bot`
test -d "$bin" || bin=.venv/bin
most_bytes=68157440 # as record_bundle takes
scratch=$(mktemp -d)
answer=("$bin/hybridwatch" answer result --repo "$GITHUB_REPOSITORY" --pr "$PULL_REQUEST" --comment "$COMMENT")

failed() {
    "${answer[@]}" --state failed --note "$1"
    exit 0
}

# Whatever goes wrong here, the command must not stand as running for ever.
ended() {
    status=$?
    rm -rf "$scratch"
    test "$status" = 0 || "${answer[@]}" --state failed --note "what it left could not be shown: see its log"
    exit "$status"
}
trap ended EXIT

bundle=$(gh api "repos/$GITHUB_REPOSITORY/actions/runs/$RUN/artifacts?name=hybridwatch" \
    --jq '.artifacts[0].id // empty')
test -n "$bundle" || failed "it left nothing: see its log"
gh api "repos/$GITHUB_REPOSITORY/actions/artifacts/$bundle/zip" | head -c "$most_bytes" >"$scratch/bundle.zip" ||
    failed "what it left has more than $((most_bytes >> 20)) MiB, or could not be fetched"
number=$("$bin/python" -P -m hybridwatch.integrations.github.record_bundle "$scratch/bundle.zip" "$scratch/results") ||
    failed "what it left is not what a measurement leaves"
test "$number" = "$PULL_REQUEST" || failed "what it left is of another pull request"
test -d "$scratch/results/records" -o -f "$scratch/results/bisect.json" || failed "it left no record: see its log"
state=done note=
test "$OUTCOME" = success || { state=failed note="it did not come to its end: see its log"; }
"${answer[@]}" --state "$state" --note "$note" --records "$scratch/results"
