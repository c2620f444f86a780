#!/usr/bin/env bash
# Installs what is in dist/ into empty environments of PYTHON (python3), wheels and then sdists. All else comes from
# the one index that pip uses, PyPI by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kind in whl tar.gz; do
    "${PYTHON:-python3}" -m venv --clear "$work/venv"
    python=$work/venv/bin/python
    files=(dist/hybridwatch*."$kind")
    [ "${#files[@]}" = 3 ] || { echo "install-distributions: dist: expected 3 files *.$kind, found ${files[*]}" >&2; exit 2; }
    "$python" -P -m pip --disable-pip-version-check install --quiet "${files[@]}"
    "$python" -P -m pip --disable-pip-version-check check
    # Elsewhere, so that nothing of the checkout is read.
    (cd "$work" && venv/bin/hybridwatch scenarios --check && venv/bin/hybridwatch mutants --help >/dev/null)
    (cd "$work" && venv/bin/python -c "import hybridwatch_engine, importlib.metadata as m; \
print('installed', *(f'{n}=={m.version(n)}' for n in ('hybridwatch', 'hybridwatch-engine', 'hybridwatch-lab')))")
done
