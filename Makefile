# One command for each thing a developer does; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo fleet-demo tutorial deb test check format bench chaos evaluation faults fuzz soak kernels systemd cleanroot clean bpfcc moved

# The first interpreter that is new enough; PYTHON=... overrides.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 /usr/bin/python3,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin

# Tests start hundreds of short processes: without bytecode each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

# Only these files are read for the kernel tests, in this order: the long ones come early, none is left for the end.
KERNEL_TESTS = $$(grep -rl --include='test_*.py' 'mark\.kernel' tests | LC_ALL=C sort)

# A shared host can keep both CPUs busy for longer than a kernel test waits. So what failed is run again, alone: who fails
# twice has failed. Where no failed test is known, as after a crash, nothing is run and that counts as failed, too.
AGAIN_ALONE = { echo "the kernel tests that failed are run again, alone"; \
	$(BIN)/pytest -m kernel --last-failed --last-failed-no-failures none $(KERNEL_TESTS); }

help: ## list what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 11

setup: bpfcc .venv/ready ## make .venv with specmine and its tools; install python3-bpfcc (says so) if it is missing

bpfcc:
	@.ci/packages python3-bpfcc

# A moved folder has wrong paths in its scripts: the name of the folder is part of what was built.
.venv/ready: pyproject.toml $(if $(findstring $(CURDIR),$(shell cat .venv/ready 2>/dev/null)),,moved)
	@test -n "$(PYTHON)" || { echo "make: no Python >= 3.11 found; install one and say PYTHON=/path/to/it" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || .ci/packages python3-venv
	@echo "setup: .venv/ with $$($(PYTHON) --version), specmine (editable) and its development tools"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fleet,plot,web]' --group dev
	@echo "$(CURDIR)" > $@

moved:

demo: setup ## a stock apache2: what is normal, a change, what is said about it; 3 minutes, leaves nothing; needs root
	@$(BIN)/python -m examples.demo.run

fleet-demo: setup ## three hosts, one slow, one with a newer build, in at most 5 minutes; needs root
	@.ci/packages gcc postgresql
	@$(BIN)/python -m examples.fleet.run

tutorial: setup ## docs/tutorial.md followed on a redis of its own: what its commands print; 5 minutes, needs root
	@.ci/packages redis-server
	@$(BIN)/python -m examples.tutorial.run

deb: ## build the Debian package into dist/
	@.ci/packages python3-venv
	@packaging/deb.sh

test: setup ## everything: checks, then all tests (those marked kernel need root)
	@.ci/packages gcc g++ libc6-dev libdw-dev gdb golang-go libboost-context-dev musl-tools libluajit-5.1-dev strace prometheus prometheus-alertmanager openssl postgresql chromium man-db redis-server
	@$(MAKE) --no-print-directory check
	@status=0; \
	$(BIN)/pytest -m 'not kernel' -n auto --dist worksteal || status=1; \
	$(BIN)/pytest -m kernel -n 2 --dist loadfile --no-loadscope-reorder $(KERNEL_TESTS) || \
	  $(AGAIN_ALONE) || status=1; \
	exit $$status

check: setup ## what is wrong without running it: ruff, mypy, who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff lay out the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# All benches together take hours; the docs name the bench above each table that it makes.
SHORT := overhead.calls overhead.attach_pauses overhead.probe_sites overhead.bystander
BENCHES ?= overhead.peers

bench: setup ## specmine beside other tools in one table, in about ten minutes (root); BENCHES=list lists all benches, BENCHES='overhead.calls ...' runs some, BENCHES=short the short ones
ifeq ($(strip $(BENCHES)),list)
	@$(BIN)/python -m bench.lib.index
else
	@.ci/packages gcc g++ libc6-dev bpftrace bpfcc-tools $(if $(filter overhead.peers,$(BENCHES)),linux-perf uftrace redis-server nginx postgresql)
	@for b in $(if $(filter short,$(BENCHES)),$(SHORT),$(BENCHES)); do \
	  echo "== bench.$$b"; $(BIN)/python -m bench.$$b || exit; done
endif

chaos: setup ## hostile programs under probes, 20 runs each (RUNS=n overrides); needs root
	@.ci/packages gcc g++ libc6-dev gdb golang-go libboost-context-dev musl-tools libluajit-5.1-dev
	CHAOS_RUNS=$(or $(RUNS),20) $(BIN)/pytest tests/chaos -s

fuzz: setup ## damaged files, stores, recordings, configurations, conversations: 1,000 of each (N=n), ten times as many ELF files
	$(BIN)/python -m tests.support.fuzz.run --count $(or $(N),1000) --seed $(or $(SEED),1) $(KINDS)

faults: setup ## slowdowns of a C++ server, redis, nginx, postgres, apache, mariadb: what is opened, when, why (PROGRAMS=redis, OPTIONS='--only SORT'; ROUNDS=5: each five times); root
	@.ci/packages g++ bpftrace redis-server nginx postgresql apache2-bin mariadb-server mariadb-client
	$(BIN)/python -m $(if $(ROUNDS),bench.faults.rounds --rounds $(ROUNDS) --folder $(or $(FOLDER),/var/tmp/specmine-faults),bench.faults.live $(PROGRAMS)) $(OPTIONS)

evaluation: setup ## the papers' questions asked of eight stock programs: models of executions, their size, cases; root (OPTIONS='--executions 3')
	@.ci/packages gcc apache2-bin nginx redis-server memcached postgresql mariadb-server mariadb-client sqlite3 xz-utils
	$(BIN)/python -m bench.evaluation.models $(PROGRAMS) $(OPTIONS)

soak: setup ## a daemon over short lives and new builds for three hours (HOURS=n): memory and descriptors as slopes; root
	@.ci/packages gcc
	$(BIN)/python -m bench.resilience.soak --hours $(or $(HOURS),3)

kernels: setup ## kernel tests on Debian's 6.1 and 6.12 in QEMU, and on this kernel: half an hour each (ONLY=6.1, 6.12, here); root
	$(BIN)/python -m tests.kernels.run $(if $(ONLY),--only $(ONLY))

systemd: setup ## the unit's life under a systemd of its own (PID 1 of a namespace): five minutes; needs root
	$(BIN)/python -m tests.kernels.systemd

cleanroot: setup ## install, upgrade, remove, purge the Debian package in a minimal Debian: two minutes; needs root
	@.ci/packages debootstrap lintian gcc libc6-dev
	$(BIN)/python -m tests.packaging.clean_root

clean: ## remove what was made here, the environment too
	rm -rf .venv build dist src/specmine.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
