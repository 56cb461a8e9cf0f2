# make demo   set up, build, report on a bundled capture, and run simulated users on a private Samba
# make test   set up and run all tests: format, lints, unit, property, tshark comparison, fuzzing
# make bench  build the benchmark captures (once) and print the table of docs/benchmarks.md
# make bench-crypto  signing and encryption by the libraries that there are, on this machine
# make bench-probe   what a recorder inside Samba costs it, beside bpftrace and strace (needs root)
# make bench-load    CPU per operation and memory per session of the load client, of the floor, of other clients
# make verify-predictions  predictions against changes really made on a private Samba (needs root; an hour and a half)
# make verify-findings     each trouble of explain made on a private Samba, and what is told of it (needs root; five minutes)
# make test-kernel  the probe on Debian 12's own kernel, in QEMU (needs root; a few minutes)
# make bless  accept the current output as the golden results

# Outside the checkout, so that it survives a fresh clone: DataFusion takes minutes to build.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/smbscope/target
export PATH := $(HOME)/.cargo/bin:$(PATH)
SMBSCOPE := $(CARGO_TARGET_DIR)/release/smbscope
DEMO := $(CURDIR)/smbscope-demo.html
DEMO_RUN := $(CURDIR)/smbscope-demo-run
export FUZZ_TARGET_DIR ?= $(HOME)/.cache/smbscope/fuzz
FUZZ_SECONDS ?= 3

.PHONY: demo test test-kernel verify-predictions verify-findings bench bench-crypto bench-load bench-probe bless build fuzz

demo: build
	scripts/setup.sh demo
	$(SMBSCOPE) report tests/fixtures/smb311.pcapng --format text --html $(DEMO)
	scripts/demo.sh $(SMBSCOPE) $(DEMO_RUN)
	@echo
	@echo "The reports as pages: $(DEMO) (a capture), $(DEMO_RUN).html (simulated users)"

build:
	scripts/setup.sh build
	@test -x $(SMBSCOPE) || echo "The first build takes 15 to 25 minutes on two cores (DataFusion)." >&2
	cargo build --release --locked -p smbscope $$(scripts/features.sh)

test:
	scripts/setup.sh test
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets $$(scripts/features.sh) -- -D warnings
	SMBSCOPE_PYTHON=$${SMBSCOPE_PYTHON:-$(HOME)/.cache/smbscope/venv/bin/python} cargo test --locked --workspace $$(scripts/features.sh)
	cargo check --locked --manifest-path bench/load/Cargo.toml --target-dir $(CARGO_TARGET_DIR)/bench-load
	fuzz/run.sh $(FUZZ_SECONDS)

test-kernel:
	scripts/setup.sh test
	scripts/test-kernel.sh

verify-predictions: build
	scripts/setup.sh predictions
	python3 tests/predictions/verify.py --smbscope $(SMBSCOPE) --python $(HOME)/.cache/smbscope/venv/bin/python

verify-findings: build
	scripts/setup.sh predictions
	python3 tests/findings/lab.py --smbscope $(SMBSCOPE) --python $(HOME)/.cache/smbscope/venv/bin/python --markdown

fuzz:
	fuzz/run.sh 60

bench: build
	scripts/setup.sh bench
	bench/run.sh

bench-probe: build
	scripts/setup.sh bench
	python3 bench/probe.py --smbscope $(SMBSCOPE) --case metadata
	python3 bench/probe.py --smbscope $(SMBSCOPE) --case homefolder

bench-crypto:
	scripts/setup.sh build
	cargo run --release --locked --manifest-path bench/crypto/Cargo.toml --target-dir $(CARGO_TARGET_DIR)/bench-crypto

bench-load:
	scripts/setup.sh build
	cargo build --release --locked --manifest-path bench/load/smb/Cargo.toml --target-dir $(CARGO_TARGET_DIR)/bench-load
	cargo build --release --locked --manifest-path bench/load/Cargo.toml --target-dir $(CARGO_TARGET_DIR)/bench-load
	$(CARGO_TARGET_DIR)/bench-load/release/smbscope-bench-load

bless:
	INSTA_UPDATE=always cargo test --workspace $$(scripts/features.sh)
