# Each target does all of its own set-up in .venv; PYTHON names the interpreter that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without bytecode, each of a thousand processes compiles its modules again, and torch's with them.
unexport PYTHONDONTWRITEBYTECODE
SETUP := $(VENV)/.setup
# More options of pytest, for `make test` and `make test-all`; CI says by them what passed already.
TEST_OPTIONS ?=

.PHONY: demo test durations test-all test-cuda12 test-gpu test-rocm test-xpu torch-day mutants weight lint format docs nix nix-host nix-check nix-template clean

demo: $(SETUP)
	$(BIN)/python examples/demo.py

test: $(SETUP)-test
	$(BIN)/python -m pytest $(TEST_OPTIONS) -n auto --dist worksteal --durations=15 -m "not (cuda or rocm or nix or gpu or network or slow)"

# Writes tests/DURATIONS.md, from the same tests.
durations: $(SETUP)-test
	$(BIN)/python -m pytest -n auto --dist worksteal -p tests.durations -m "not (cuda or rocm or nix or gpu or network or slow)"

test-all: $(SETUP)-test
	$(BIN)/python -m pytest $(TEST_OPTIONS) -n auto --dist worksteal --durations=15 -m "not gpu"

# Kept apart: what it fetches has 0.5 GB.
test-xpu: $(SETUP)-test
	$(BIN)/python -m pip install --quiet --group xpu
	$(BIN)/python -m pytest --durations=15 -m xpu

# With the HIP of Debian sid, in a root that is made for it: as root, on Debian. ROCM_PYTHON=/usr/bin/python3.11 names
# a Python of this machine for the tests, where torch has no wheel for that of sid.
test-rocm:
	.ci/bare/rocm $(ROCM_PYTHON)

# The same with the CUDA 12.4 of Debian 13.
test-cuda12:
	.ci/bare/cuda12 $(CUDA12_PYTHON)

# On the GPU of this machine; without one, every test skips and says so.
test-gpu: $(SETUP)-test
	$(BIN)/python -m pytest --durations=15 -m gpu

# A new torch: its data is written, then tested and built with; VERSION names one, TORCH_DAY has more options.
torch-day: $(SETUP)-test
	.ci/torch-day $(VERSION) $(TORCH_DAY)

# Small changes of the core that no test notices, tried in a checkout of the last commit that nothing else uses; an hour.
mutants: $(SETUP)-test
	$(BIN)/python -m pip install --quiet --group mutants
	git worktree add --quiet --detach build/mutants
	trap 'git worktree remove --force build/mutants' EXIT; cd build/mutants \
	  && PYTHONPATH=$(CURDIR)/build/mutants $(CURDIR)/$(BIN)/python benchmarks/mutants.py

# How much there is to read, and how much of it runs for a command; it checks nothing.
weight: $(SETUP)
	$(BIN)/python benchmarks/weight.py

lint: $(SETUP)-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/demo.py
	$(BIN)/gersemi --check cmake

format: $(SETUP)-lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/gersemi --in-place cmake

$(VENV)/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "this takes Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(SETUP): $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(SETUP)-test: $(SETUP) tests/install_torch.py builder/data/pins.toml
	$(BIN)/python -m pip install --quiet --group test
	$(BIN)/python tests/install_torch.py
	touch $@

$(SETUP)-lint: $(SETUP)
	$(BIN)/python -m pip install --quiet --group lint --group test
	touch $@

# Every release cell that this machine's own tools can build, in Nix's sandbox, and each of them a second time.
# Folders of PIP_FIND_LINKS are shown to the sandbox, in which pip looks for the pinned wheels.
SANDBOX_PATHS := $(shell sed -n 's/^sandbox-paths = //p' builder/nix/host/host.toml | tr -d '[]",') $(wildcard $(PIP_FIND_LINKS))
# Root without a daemon builds as itself where there is no group of users to build as: Debian's nix-bin makes none.
NIX_USERS := $(shell [ "$$(id -u)" != 0 ] || grep -qs build-users-group /etc/nix/nix.conf || getent group nixbld >/dev/null \
  || echo "--option build-users-group ''")
NIX := nix --extra-experimental-features 'nix-command flakes' --option substitute false \
  --option sandbox true --option sandbox-fallback false --option extra-sandbox-paths '$(SANDBOX_PATHS)' $(NIX_USERS)
NIX_PYTHONS :=
NIX_HOST := --override-input nixpkgs path:./build/nix-host --no-write-lock-file
NIX_HERE := git+file://$(CURDIR)
NIX_SYSTEM := $(shell uname -m)-linux
NAMES := examples: toString (builtins.concatMap (name: map (cell: ".\#cells.$(NIX_SYSTEM).$${name}.$${cell}") examples.$${name}) (builtins.attrNames examples))

# The site of docs/, in site/; nothing in it is fetched when it is read.
docs: $(SETUP)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m builder.cli.reference > docs/cli.md
	$(BIN)/python -m builder schema --format markdown > docs/config.md
	$(BIN)/python website/terminal.py plan
	$(BIN)/mkdocs build --quiet --strict

nix: nix-check nix-template
	$(NIX) build .#kernels $(NIX_HOST) --print-build-logs --out-link result-kernels
	$(NIX) build --rebuild --no-link --keep-going $(NIX_HOST) $$($(NIX) eval --raw .#released.$(NIX_SYSTEM) $(NIX_HOST) --apply '$(NAMES)')
	ls -l result-kernels/

nix-host:
	builder/nix/host/here build/nix-host $(NIX_PYTHONS)

nix-check: nix-host
	$(NIX) flake check --no-build $(NIX_HOST)
	$(NIX) flake show $(NIX_HOST) >/dev/null

# The template gives a kernel that builds; apart from here, since in this repository Nix would look for it among tracked files.
nix-template: nix-host
	folder=$$(mktemp -d) && cd "$$folder" && $(NIX) flake init --template '$(NIX_HERE)' \
	  && $(NIX) build "path:$$folder#kernels" --override-input builder '$(NIX_HERE)' \
	    --override-input builder/nixpkgs 'path:$(CURDIR)/build/nix-host' --no-write-lock-file --out-link "$$folder/result" \
	  && ls "$$folder/result/" && rm -rf "$$folder"

clean:
	rm -rf $(VENV) build dist demo site .pytest_cache .mypy_cache .ruff_cache
