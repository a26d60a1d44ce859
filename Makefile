# Everything that is needed to build, run and test hookgate. `make run` and `make demo` are where to begin.

CARGO ?= cargo
PYTHON ?= python3
# `make run PROFILE=dev` builds faster and runs slower.
PROFILE ?= release
ARGS ?=

TARGET = $(or $(CARGO_TARGET_DIR),target)
VENV = .venv
CLIENTS = tests/clients
CONFORMANCE = tests/conformance
# Tests beside each other: most of what they do is to wait.
WORKERS ?= 3
PYTEST = HOOKGATE_BIN=$(abspath $(TARGET))/debug/hookgate $(VENV)/bin/python -m pytest -q -p no:cacheprovider -n $(WORKERS)

.PHONY: run demo test test-rust test-python test-mcp test-clients bench fuzz setup

run: setup
	$(CARGO) run --profile $(PROFILE) --features cli --bin hookgate -- run $(ARGS)

demo: setup
	$(CARGO) run --features cli --bin hookgate -- demo

test: test-rust test-python

test-rust: setup
	$(CARGO) test --all-features

# The test is named so that the binary is the one that test-rust has built: without it, dependencies have fewer features.
test-python: setup $(VENV)/ready
	$(CARGO) build --all-features --bin hookgate --test it --example mcp_fixture
	$(PYTEST) tests/python

# The official conformance suite of MCP, directly and through hookgate: both have to come to the same. Takes about a minute and
# a half, and 240 MB for what it installs.
test-mcp: setup $(VENV)/ready $(CONFORMANCE)/node_modules/ready
	$(CARGO) build --all-features --bin hookgate --test it --example mcp_fixture
	HOOKGATE_BIN=$(abspath $(TARGET))/debug/hookgate $(VENV)/bin/python $(CONFORMANCE)/run.py

# Compares hookgate with a bare pingora proxy: takes under five minutes once it is built, and writes the figures into README.md and
# BENCHMARKS.md. `make bench ARGS="--rounds 1 --only MCP"` runs a part once and writes nothing; on Linux only.
bench: setup
	@command -v wrk >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq wrk >/dev/null; \
	} || { echo "wrk, the load generator, is missing: install it (Debian: apt-get install wrk) and try again."; exit 1; }
	$(CARGO) build --release --features full --bin hookgate --example compare --example floor_proxy
	ulimit -n "$$(ulimit -Hn)" && $(TARGET)/release/examples/compare $(ARGS)

# Looks for bytes that break a law of src/fuzz.rs, so many SECONDS with each. Takes ten minutes to build; the compiler's switches for
# coverage are not stable, hence the variable.
SECONDS ?= 60
LAWS ?= json sse request answer document tools
fuzz: setup
	@command -v cargo-fuzz >/dev/null || $(CARGO) install cargo-fuzz --locked
	cd fuzz && export RUSTC_BOOTSTRAP=1 && $(CARGO) fuzz build -s none -O && for law in $(LAWS); do \
		mkdir -p corpus/$$law && $(CARGO) fuzz run -s none -O $$law corpus/$$law ../tests/seeds -- -dict=words.dict -max_total_time=$(SECONDS) || exit 1; \
	done

# Real clients with a model that is scripted: agent programs from npm and the SDK of `make test-python`. Not a part of
# `make test`: what it installs takes 530 MB. `make test-clients ARGS="-k terminal"` runs some of them.
test-clients: setup $(VENV)/ready $(CLIENTS)/node_modules/ready $(VENV)/terminals-ready
	$(CARGO) build --all-features --bin hookgate --test it --example mcp_fixture
	$(PYTEST) -rsx tests/python $(CLIENTS) $(ARGS)

$(VENV)/terminals-ready: $(VENV)/ready $(CLIENTS)/requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(CLIENTS)/requirements.txt
	@touch $@

# A Node.js that is new enough comes with the packages, where there is one for the machine.
%/node_modules/ready: %/package.json %/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or later and try again."; exit 1; }
	npm ci --prefix $* --no-audit --no-fund --loglevel=error
	@touch $@

# The native build needs a C compiler and cmake (for the zlib that the proxy uses). As root on Debian cmake is installed,
# elsewhere one sentence says what to do.
setup:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install it from https://rustup.rs and try again."; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing: install one (Debian: apt-get install build-essential; macOS: xcode-select --install) and try again."; exit 1; }
	@command -v cmake >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq cmake >/dev/null; \
	} || { echo "cmake is missing: install it (Debian: apt-get install cmake; macOS: brew install cmake) and try again."; exit 1; }

$(VENV)/ready: tests/python/requirements.txt
	@$(PYTHON) -m venv --clear $(VENV) || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null && $(PYTHON) -m venv --clear $(VENV); \
	} || { echo "Python 3.9 or later with venv is missing: install it (Debian: apt-get install python3-venv) and try again."; exit 1; }
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/python/requirements.txt
	@touch $@
