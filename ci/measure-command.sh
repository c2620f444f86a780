#!/usr/bin/env bash
# The untrusted half of a command: measures what ci/command.sh wrote down, with the pull request's code,
# and packs what came of it. It gets no token.
#
#   ARGUMENTS     a JSON list: the verb and its words
#   PULL_REQUEST  its number
# Leaves bundle/records and bundle/pull-request.txt, of a search bundle/bisect.json too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${ARGUMENTS:?a JSON list}" "${PULL_REQUEST:?the number of the pull request}"
mapfile -t words < <(python3 -c 'import json, os; print(*json.loads(os.environ["ARGUMENTS"]), sep="\n")')
rm -rf bundle
mkdir bundle
echo "$PULL_REQUEST" >bundle/pull-request.txt
# Status 1 is a finding: a failed trial, or a change that was not found.
case "${words[0]}" in
run) .venv/bin/hybridwatch "${words[@]}" --line "pr-$PULL_REQUEST" --results bundle || test $? -eq 1 ;;
bisect) .venv/bin/hybridwatch "${words[@]}" --results bundle --json >bundle/bisect.json || test $? -eq 1 ;;
*) echo "ARGUMENTS: expected run or bisect first" >&2 && exit 2 ;;
esac
