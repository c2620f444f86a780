#!/usr/bin/env bash
# The untrusted half: measures a pull request's build against the baseline and packs the records.
# It runs a stranger's code, so it gets no token and posts nothing; ci/comment.sh does.
#
#   PULL_REQUEST   its number
#   BASELINE       engine build, BUILD~fix and BUILD+fix too    [the newest for CPUs]
#   CONTENDER      the pull request's                           [BASELINE: an A/A comparison]
#   SOURCE         instead of both: a checkout of vLLM at the pull request, with tags, or a wheel of it;
#                  the release that it comes from is the baseline
#   SCENARIOS      ids and groups, as `expected` in gate.toml   [smoke]
# Leaves bundle/records, bundle/pull-request.txt, and bundle/profiles of what got slower.
set -euo pipefail
source=${SOURCE:+$(realpath "$SOURCE")}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${PULL_REQUEST:?the number of the pull request}"
baseline=${BASELINE:-$(ci/release-builds.sh | tail -n 1)}
contender=${CONTENDER:-$baseline}
read -ra scenarios <<<"${SCENARIOS:-smoke}"

rm -rf bundle
mkdir bundle
echo "$PULL_REQUEST" >bundle/pull-request.txt
# A failed trial (status 1) is a finding, which the gate and the comment tell.
if [[ $source ]]; then
    .venv/bin/hybridwatch try "$source" "${scenarios[@]}" --line "pr-$PULL_REQUEST" --results bundle || test $? -eq 1
else
    .venv/bin/hybridwatch run "${scenarios[@]}" --build "$baseline" --build "$contender" \
        --line "pr-$PULL_REQUEST" --profile --results bundle || test $? -eq 1
fi
# In GitHub Actions with annotations, which no record can forge.
.venv/bin/hybridwatch gate --results bundle ${GITHUB_ACTIONS:+--github}
