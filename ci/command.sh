#!/usr/bin/env bash
# The trusted half of a command in a comment: decides who asks for what, and shows it. The comment comes
# in the file of the event and is never a word of any command line here.
#
#   GITHUB_TOKEN       pull-requests: write
#   GITHUB_REPOSITORY  owner/name
#   GITHUB_EVENT_PATH  the event issue_comment
#   GITHUB_OUTPUT      gets what is to be measured: arguments, head
#   BASELINE           engine build that `run` compares when nobody names one    [the newest for CPUs]
#   CONTENDER          the pull request's                                        [BASELINE: an A/A comparison]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${GITHUB_TOKEN:?}" "${GITHUB_REPOSITORY:?}" "${GITHUB_EVENT_PATH:?}" "${GITHUB_OUTPUT:?}"
bin=.venv-bot/bin # `make bot`
test -d "$bin" || bin=.venv/bin
baseline=${BASELINE:-$(ci/release-builds.sh | tail -n 1)}
"$bin/hybridwatch" answer comment "$GITHUB_EVENT_PATH" --repo "$GITHUB_REPOSITORY" --job "$GITHUB_OUTPUT" \
    --build "$baseline" --build "${CONTENDER:-$baseline}"
