# make demo   set up, build, report on a bundled capture, and run simulated users on a private Samba
# make check  format, lints, prose, unit tests without Samba (two minutes, warm)
# make test   set up and run everything: check, all tests, the tshark comparison, documentation, fuzzing
# make bench  build the benchmark captures (once) and print the decoder's benchmark table
#
# make build    the program with all its features, in release mode
# make install  that program to PREFIX/bin (PREFIX=/usr/local, DESTDIR), with manual pages and completions
# make dist     the small, stripped program that a release ships
# make packages  .deb, .rpm, .tar.gz, Python wheel, .zip for Windows if `make windows` built it, SBOM and checksums, into PACKAGES
# make windows   smbscope.exe, in a root of Debian unstable with mingw-w64 (WINDOWS_ROOT, 5 GB; needs root; half an hour)
# make test-packages  each package on clean systems: install, report, manual page, completion, uninstall (needs root)
# make test-windows   smbscope.exe under Wine: outputs equal Linux's, load against a private Samba (needs root)
# make schemas  the JSON Schemas of all answers, into the folder SCHEMAS (default: schemas)
# make bless    accept the current output as the golden results
# make fuzz     every fuzz target for a minute (FUZZ_SECONDS for `make test`)
# make doc      the crates' documentation; warnings are errors
# make audit    licences, sources and duplicate dependencies (cargo deny), unused dependencies (cargo machete)
# make msrv     compile with the oldest supported Rust
# make check-targets  compile for Windows and macOS what needs no C compiler for them
# make build-size  lines of LLVM code of each of our crates, against the recorded figures (minutes: it compiles them)
#
# make bench-crypto  signing and encryption in the available libraries, on this machine
# make bench-probe   what the recorder costs a running Samba, compared with bpftrace and strace (needs root)
# make bench-load    CPU per operation and memory per session of the load client and of other clients
# make verify-predictions  predictions against changes made on a private Samba (needs root; 90 minutes)
# make verify-verdicts     state, owner and cause of made-up captures against what is true; writes the table in docs/measurements
# make verify-rules        removes each condition of the rules of explain: does a test fail? (an hour)
# make verify-findings     every finding of explain, provoked on a private Samba (needs root; five minutes)
# make verify-durability  a plug pulled 100 times: a private Samba on a file system that loses data (needs root; 15 minutes)
# make verify-trust      a hostile server, bombs, datasets of strangers, killed recorders: limits and outcomes (needs root; ten minutes)
# make verify-plans      ten thousand random plans of a namespace's move, executed in a model (a minute or two)
# make verify-baseline   what signing costs a private Samba against `plan baseline` (needs root; five minutes)
# make bench-channels    several paths against raw TCP and against predictions (needs root; ten minutes)
# make bench-bulk        SMB on the loopback interface next to net, iperf3 and smbclient (five minutes)
# make bench-net         `smbscope net` against iperf3, sockperf and ping (needs root; ten minutes)
# make verify-cpu   a recording of processors against the kernel's counters and bpftrace (needs root; a minute)
# make verify-writes      ways of writing to a private Samba against tshark (needs root; a minute)
# make verify-rss   hash and processor of each connection against a virtio adapter with RSS, in QEMU (needs root; a minute)
# make flaky   tests with processes, time, FUSE or the network FLAKY_ROUNDS times (50) with busy CPUs (needs root; hours)
# make test-kernel  the probe on Debian 12's own kernel, in QEMU (needs root; a few minutes)
# make test-servers ksmbd, the kernel's SMB client, and Samba that loses its power, in QEMU (ten minutes; a part is in `make test`)

# Outside the checkout, so that the build survives a fresh clone: DataFusion takes minutes to compile.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/smbscope/target
export PATH := $(HOME)/.cargo/bin:$(PATH)
CACHE := $(HOME)/.cache/smbscope
SMBSCOPE := $(CARGO_TARGET_DIR)/release/smbscope
SMBSCOPE_DEMO := $(CARGO_TARGET_DIR)/demo/smbscope
PREFIX ?= /usr/local
DEMO := $(CURDIR)/smbscope-demo.html
DEMO_RUN := $(CURDIR)/smbscope-demo-run
export FUZZ_TARGET_DIR ?= $(CACHE)/fuzz
FUZZ_SECONDS ?= 3
FLAKY_ROUNDS ?= 50
SCHEMAS ?= schemas
PACKAGES ?= $(CURDIR)/dist
export WINDOWS_ROOT ?= $(CACHE)/windows
WINDOWS := $(WINDOWS_ROOT)/target/x86_64-pc-windows-gnu/dist/smbscope.exe
export SMBSCOPE_PYTHON ?= $(CACHE)/venv/bin/python
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: demo build build-demo build-size install dist packages windows test-packages test-windows schemas check check-targets test flaky test-kernel test-servers verify-predictions verify-findings verify-verdicts verify-rules verify-cpu verify-writes verify-plans verify-trust verify-baseline verify-durability verify-rss bench \
	bench-bulk bench-channels bench-crypto bench-load bench-net bench-probe bless fuzz doc audit msrv

demo: build-demo
	scripts/setup.sh demo
	$(SMBSCOPE_DEMO) report tests/fixtures/smb311.pcapng --format text --force --html $(DEMO)
	scripts/demo.sh $(SMBSCOPE_DEMO) $(DEMO_RUN)
	@echo
	@echo "The reports as pages: $(DEMO) (a capture), $(DEMO_RUN).html (simulated users)"
	@echo "The program: $(SMBSCOPE_DEMO)"
	@echo "  to call it smbscope:  export PATH=$(dir $(SMBSCOPE_DEMO)):\$$PATH"
	@echo "  with all features (SQL, planners, recorders, Kerberos): make build install PREFIX=\$$HOME/.local"

# Without the optional features, which the demo does not use, and with a profile that compiles quickly.
build-demo:
	scripts/setup.sh compile
	@test -x $(SMBSCOPE_DEMO) || echo "The first build takes about ten minutes on two cores." >&2
	cargo build --profile demo --locked -p smbscope --no-default-features

build:
	scripts/setup.sh build
	@test -x $(SMBSCOPE) || echo "The first build takes about 25 minutes on two cores (DataFusion)." >&2
	cargo build --release --locked -p smbscope $$(scripts/features.sh)

install:
	@test -x $(SMBSCOPE) || { echo "make install installs what make build has built: run it first" >&2; exit 1; }
	install -D $(SMBSCOPE) $(DESTDIR)$(PREFIX)/bin/smbscope
	$(SMBSCOPE) man --dir $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(SMBSCOPE) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/smbscope

# No path of the building machine is in the program, so that two machines build the same bytes.
REMAPPED = --remap-path-prefix=$(CURDIR)=smbscope --remap-path-prefix=$(HOME)/.cargo/registry=cargo
# Rust links with lld on x86-64 Linux, which folds identical functions; other linkers do not know the option.
dist:
	scripts/setup.sh build
	case "$$(uname -sm)" in "Linux x86_64") fold="-C link-arg=-Wl,--icf=all" ;; *) fold= ;; esac; \
	LIBBPF_SYS_LIBRARY_PATH="$$(pkg-config --variable=libdir libelf)" RUSTFLAGS="$$fold $(REMAPPED)" cargo build --profile dist --locked -p smbscope $$(scripts/features.sh) --features static
	@ls -l $(CARGO_TARGET_DIR)/dist/smbscope

packages: dist
	scripts/setup.sh packages
	$(SMBSCOPE_PYTHON) packaging/packages.py --program $(CARGO_TARGET_DIR)/dist/smbscope $(if $(wildcard $(WINDOWS)),--windows $(WINDOWS)) --out $(PACKAGES)

windows:
	scripts/setup.sh windows
	packaging/windows.sh $(WINDOWS_ROOT)
	@ls -l $(WINDOWS)

test-packages:
	scripts/setup.sh packages
	packaging/check.sh $(PACKAGES)

test-windows:
	scripts/setup.sh windows
	$(SMBSCOPE_PYTHON) packaging/compare.py --linux $(CARGO_TARGET_DIR)/dist/smbscope --windows $(WINDOWS)

schemas: build-demo
	$(SMBSCOPE) schema --dir $(SCHEMAS) --force

check:
	scripts/setup.sh check
	scripts/check.sh

test:
	scripts/setup.sh test
	scripts/test.sh $(FUZZ_SECONDS)

flaky:
	scripts/setup.sh test
	scripts/flaky.py --rounds $(FLAKY_ROUNDS) -- $$(scripts/features.sh)

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps $$(scripts/features.sh)

audit:
	scripts/setup.sh audit
	PATH="$(CACHE)/tools/bin:$$PATH" cargo machete
	PATH="$(CACHE)/tools/bin:$$PATH" cargo deny --locked check bans licenses sources

msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --locked --workspace --all-targets --target-dir $(CARGO_TARGET_DIR)/msrv $$(scripts/features.sh)

check-targets:
	scripts/setup.sh build
	scripts/check-targets.sh

build-size:
	scripts/build-size.py lines

test-kernel:
	scripts/setup.sh test
	scripts/test-kernel.sh

test-servers:
	scripts/setup.sh servers
	scripts/test-servers.sh

verify-predictions: build
	scripts/setup.sh predictions
	python3 tests/predictions/verify.py --smbscope $(SMBSCOPE)

verify-verdicts: build
	tests/diagnoses/check.py $(SMBSCOPE) --table docs/measurements/verdicts.md

verify-rules:
	tests/diagnoses/mutate.py --table docs/measurements/rules.md

verify-findings: build
	scripts/setup.sh predictions
	python3 tests/findings/lab.py --smbscope $(SMBSCOPE) --markdown

verify-cpu: build
	scripts/setup.sh bench
	$(SMBSCOPE_PYTHON) tests/live/cpu.py --smbscope $(SMBSCOPE)

verify-writes: build
	python3 tests/live/durability.py --smbscope $(SMBSCOPE)

verify-durability:
	scripts/setup.sh predictions
	SMBSCOPE_ROUNDS=100 cargo test --locked -p smbscope-load --test durability -- --nocapture --test-threads=1

verify-trust: build
	scripts/setup.sh test
	$(SMBSCOPE_PYTHON) tests/trust/check.py --smbscope $(SMBSCOPE) --table docs/measurements/trust.md

verify-plans:
	SMBSCOPE_PLANS=10000 cargo test -p smbscope-plan --test namespace_executor

verify-baseline: build
	scripts/setup.sh bench
	python3 tests/baseline/verify.py --smbscope $(SMBSCOPE)

verify-rss:
	cargo test --locked -p smbscope-plan --test steering --no-run --message-format=json | \
		python3 tests/live/rss.py

fuzz:
	fuzz/run.sh 60

bench: build
	scripts/setup.sh bench
	bench/run.sh

bench-probe: build
	scripts/setup.sh bench
	python3 bench/probe.py --smbscope $(SMBSCOPE) --case metadata
	python3 bench/probe.py --smbscope $(SMBSCOPE) --case homefolder

bench-channels: build
	scripts/setup.sh bench
	python3 bench/channels.py --smbscope $(SMBSCOPE)

bench-bulk: build
	scripts/setup.sh bench
	cargo build --release --locked -p smbscope-load --example bulk_sink
	python3 bench/bulk.py --smbscope $(SMBSCOPE) --sink $(CARGO_TARGET_DIR)/release/examples/bulk_sink
	[ "$$(id -u)" != 0 ] || python3 bench/bulk.py --smbscope $(SMBSCOPE) --sink $(CARGO_TARGET_DIR)/release/examples/bulk_sink --reno --only 'to a server'

bench-net: build
	scripts/setup.sh bench
	python3 bench/net.py --smbscope $(SMBSCOPE)

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
