#!/usr/bin/env bash
# Prints the builds of releases for CPUs, the newest last, as engine/builds.toml names them.
set -euo pipefail
sed -n 's/^\[builds\."\(cpu-[^"]*\)"\]$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../engine/builds.toml"
