#!/usr/bin/env bash
# Builds wheel and sdist of the three distributions into an empty dist/ and has twine check them.
# TAG, where set, must be "v" and their version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
if [ "${TAG:-v$version}" != "v$version" ]; then
    echo "build-distributions: TAG: expected v$version (pyproject.toml), found $TAG" >&2
    exit 2
fi
if [ -e dist ]; then
    echo "build-distributions: dist: expected no such folder, found one; remove it" >&2
    exit 2
fi
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/python" -P -m pip --disable-pip-version-check install --quiet build==1.6.1 twine==7.0.0
for folder in engine . lab; do
    # Elsewhere: a folder build/ of the checkout would be packed, too.
    copy=$(mktemp -d -p "$tools")
    git archive HEAD | tar -x -C "$copy"
    "$tools/bin/python" -P -m build --outdir dist "$copy/$folder"
done
"$tools/bin/python" -P -m twine check --strict dist/*
for name in hybridwatch_engine hybridwatch hybridwatch_lab; do
    ls "dist/$name-$version-py3-none-any.whl" "dist/$name-$version.tar.gz"
done
