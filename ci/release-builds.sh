#!/usr/bin/env bash
# Prints the builds of releases, the newest last, as engine/builds.toml names them: for CPUs, or for "cuda".
set -euo pipefail
sed -n "s/^\[builds\.\"\(${1:-cpu}-[0-9.]*\)\"\]$/\1/p" "$(dirname "${BASH_SOURCE[0]}")/../engine/builds.toml"
