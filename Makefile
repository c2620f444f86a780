# Everything here needs Python 3.11 or newer and a package registry, no GPU.
# Environments are made once: a stamp named after the content of what shaped them says they are there.
PYTHON ?= python3
BUILD ?= cpu-0.31.0
SHELL := bash
.SHELLFLAGS := -o pipefail -c
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --no-deps --progress-bar off
LOCKED := .venv/locked-$(shell (pwd; cat locks/harness.txt) | cksum | tr ' ' '-')
READY := .venv/ready-$(shell (pwd; cat locks/harness.txt pyproject.toml) | cksum | tr ' ' '-')
LAB := .venv/lab-$(shell (pwd; cat locks/harness.txt pyproject.toml lab/pyproject.toml) | cksum | tr ' ' '-')
FLEET := .venv/fleet-$(shell (pwd; cat locks/harness.txt locks/fleet.txt) | cksum | tr ' ' '-')
# One worker takes all tests that share an engine or a browser; tests/order.py says which, and in which order.
# One worker more than processors: engines and browsers are waited for.
WORKERS := -n $(shell n=$$(($$(nproc) + 1)); echo $$((n < 4 ? n : 4))) --dist loadfile --no-loadscope-reorder
# The same order and the same draws in each run; `make test-all` draws both anew from a seed that it prints.
TESTS := -m "not slow and not hours" --randomly-seed=0 --randomly-dont-reorganize
SEED ?= $(shell date +%s)
ANEW := -m "not hours" --randomly-seed=$(SEED) --hypothesis-profile=search --hypothesis-seed=$(SEED)
BEGAN := $(shell date +%s)
AT_ONCE := $(MAKE) --no-print-directory --jobs=2 --output-sync
# Where it is set, each command and each worker compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE
DOCS := .venv-docs/locked-$(shell (pwd; cat locks/docs.txt) | cksum | tr ' ' '-')
CONTRACT := tests/github/node_modules/ready-$(shell cat tests/github/package-lock.json tests/github/cut.py | cksum | tr ' ' '-')
AXE := tests/dashboard/node_modules/ready-$(shell cksum < tests/dashboard/package-lock.json | tr ' ' '-')

.DEFAULT_GOAL := help
.PHONY: help run test test-all check types style checks-and-docs harness fleet bot engine older browser promtool axe contract lock screenshots dashboard docs clean

help: ## List these targets.
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile

run: engine ## Run the smoke scenarios on the embedded model, healthy and known-bad; BUILD=cpu-0.32.0 names another release.
	$(BIN)/hybridwatch run smoke/padded-graph-rows smoke --known-bad --build=$(BUILD)

test: fleet engine older browser promtool axe contract checks-and-docs ## Everything that continuous integration runs.
	HYBRIDWATCH_TESTS_BEGAN=$(BEGAN) PYTHONHASHSEED=0 $(BIN)/python -m pytest $(WORKERS) $(TESTS)

test-all: fleet engine older browser promtool axe contract checks-and-docs ## The same with the tests that take minutes each, in another order each time.
	HYBRIDWATCH_TESTS_BEGAN=$(BEGAN) $(BIN)/python -m pytest $(WORKERS) $(ANEW)

check: $(LAB) ## Format, lint, types, layers; no test.
	@$(AT_ONCE) types style

# Types take as long as all else together, on one processor.
types: $(LAB)
	$(BIN)/mypy

style: $(LAB)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYTHONPATH=engine/src:lab/engine $(BIN)/lint-imports
	$(BIN)/python -m tests.dead_code

checks-and-docs: $(LAB)
	@$(AT_ONCE) types style docs

harness: $(READY) ## Make the harness's environment and nothing else.

.PHONY: lab
lab: $(LAB) ## Add what measures the suite itself and what maintainers run: mutants, fuzz, gpu, findings, engine track.

fleet: $(FLEET) ## Add Ray to the harness's environment, for a fleet of hosts.

bot: ## Make the environment of the job that comments: few packages, each checked by its hash.
	@$(PYTHON) -m venv --clear .venv-bot
	@.venv-bot/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all: -r locks/comment.txt
	@.venv-bot/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-index --no-build-isolation --editable .

engine: $(LAB) ## Make the environment of the engine build.
	@$(BIN)/hybridwatch engine install $(BUILD)

older: $(READY) ## Make the environment of the release whose model runner V1 the tests look into.
	@$(BIN)/hybridwatch engine install cpu-0.27.1

browser: ## Make sure that there is a browser for the dashboard's test.
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || { echo "The browser test needs chromium; on Debian: sudo apt-get install chromium" >&2; exit 1; }

promtool: ## Make sure that Prometheus' checker of alert rules is there; its test is skipped without.
	@# Taken out of the package, because the package starts a server when it is installed.
	@command -v promtool >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && cd "$$(mktemp -d)" && apt-get update -qq && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && install usr/bin/promtool /usr/local/bin/; } || echo "Nothing checks ci/prometheus.rules.yml: promtool is not there; on Debian: sudo apt-get install prometheus" >&2

axe: $(AXE) ## Make sure that axe is there, which says whether everybody can read the dashboard.

contract: $(CONTRACT) ## Make sure that GitHub's API description and its proxy are there for the bot's tests.

lock: $(LAB) ## Resolve pyproject.toml and the lab's anew into locks/harness.txt, fleet.txt and comment.txt.
	$(BIN)/python locks/refresh.py

screenshots: $(LAB) browser ## Take the pictures in README and docs anew.
	$(BIN)/python -m tests.dashboard.screenshots

dashboard: $(LAB) ## Open the dashboard on results/.
	$(BIN)/hybridwatch dashboard

docs: $(DOCS) ## Make a site of README and docs in .site/, and stop at a link that leads nowhere.
	@.venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet --nitpicky --conf-dir docs . .site

clean: ## Remove environments and caches; results stay.
	rm -rf .venv .venv-bot .venv-docs .site .engines .asv tests/github/node_modules tests/dashboard/node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(CONTRACT): # Pinned by tests/github/package-lock.json; npm starts anew whenever that changes.
	@command -v npm >/dev/null || { echo "The tests of the pull request bot need Node.js 20 with npm; on Debian: sudo apt-get install npm" >&2; exit 1; }
	@npm ci --prefix tests/github --loglevel=error --no-audit --no-fund >/dev/null
	@$(PYTHON) tests/github/cut.py && touch $@

$(AXE): # Pinned by tests/dashboard/package-lock.json; npm starts anew whenever that changes.
	@command -v npm >/dev/null || { echo "The dashboard's test of accessibility needs Node.js 20 with npm; on Debian: sudo apt-get install npm" >&2; exit 1; }
	@npm ci --prefix tests/dashboard --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@

$(LOCKED): # The harness's environment, made anew whenever the lock or the checkout's place changes.
	@$(PYTHON) -c 'import sys; sys.exit("hybridwatch needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "[1/2] harness environment: $$(grep -c == locks/harness.txt) packages, about a minute"
	@$(PYTHON) -m venv --clear .venv && $(PIP) --require-hashes -r locks/harness.txt | sed -unE '/^(Downloading .*\([0-9]{2,}.* MB|Building|Installing)/s/^(.{,96}).*/      \1/p'
	@touch $@

$(DOCS):
	@$(PYTHON) -m venv --clear .venv-docs && .venv-docs/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r locks/docs.txt && touch $@

$(LAB): $(READY)
	@$(PIP) --quiet --no-build-isolation --editable lab && touch $@

$(FLEET): $(READY)
	@echo "Ray, about 80 MB"
	@$(PIP) --quiet --require-hashes -r locks/fleet.txt && touch $@

$(READY): $(LOCKED)
	@echo "[2/2] hybridwatch itself"
	@$(PIP) --quiet --no-build-isolation --editable . && touch $@
