#!/usr/bin/env bash
# All tests: scripts/test.sh [SECONDS of fuzzing per target, default 3]. `make test` sets up and runs it.
# Tests that cannot run here (no root, no Samba 4.22 ...) are counted and listed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-3}
features=$(scripts/features.sh)
SMBSCOPE_SKIPPED=$(mktemp)
export SMBSCOPE_SKIPPED
# Incremental compilation doubles what a build leaves on the disk and gains nothing for a build from scratch.
export CARGO_INCREMENTAL=0
trap 'rm -f "$SMBSCOPE_SKIPPED"' EXIT
began=$SECONDS

step() { echo "== $1 ($((SECONDS - began)) s)" >&2; }

# A full disk fails in the middle of a build with an error of the linker: say so first. Caches are removed only if
# SMBSCOPE_CLEAN=1 allows it; a build makes them again.
needed_gib=12
free_gib() {
  mkdir -p "$CARGO_TARGET_DIR"
  df -Pk "$CARGO_TARGET_DIR" | awk 'NR == 2 { print int($4 / 1048576) }'
}
caches=()
for cache in "$CARGO_TARGET_DIR"/{debug/incremental,release,debug}; do
  [ "$(free_gib)" -lt "$needed_gib" ] || break
  [ -d "$cache" ] || continue
  caches+=("$cache")
  [ "${SMBSCOPE_CLEAN:-0}" != 1 ] || rm -rf "$cache"
done
if [ "$(free_gib)" -lt "$needed_gib" ]; then
  echo "test: $(free_gib) GiB are free in $CARGO_TARGET_DIR, and the tests need $needed_gib." >&2
  [ ${#caches[@]} -eq 0 ] || echo "test: SMBSCOPE_CLEAN=1 removes these caches until there is room: ${caches[*]}" >&2
  exit 1
fi

step "format and prose"
cargo fmt --check
scripts/prose.sh
scripts/build-size.py crates
step "lints"
# shellcheck disable=SC2086
cargo clippy --locked --workspace --all-targets $features -- -D warnings
# Without SQL: what the demo builds.
cargo clippy --locked -p smbscope --no-default-features -- -D warnings
# Lock files that the workspace does not have: fuzz and benchmarks.
git ls-files '*/Cargo.lock' | while read -r lock; do
  cargo metadata --locked --format-version 1 --manifest-path "${lock%.lock}.toml" > /dev/null
done
step "documentation"
# shellcheck disable=SC2086
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps $features
step "tests"
# nextest ends tests that hang (.config/nextest.toml), and runs no tests of documentation.
nextest=${SMBSCOPE_CACHE:-$HOME/.cache/smbscope}/venv/bin/cargo-nextest
if [ -x "$nextest" ]; then
  # shellcheck disable=SC2086
  "$nextest" nextest run --locked --workspace $features
  # shellcheck disable=SC2086
  cargo test --locked --workspace $features --doc
else
  # shellcheck disable=SC2086
  cargo test --locked --workspace $features --no-fail-fast
fi
step "servers in QEMU"
SMBSCOPE=$CARGO_TARGET_DIR/debug/smbscope scripts/test-servers.sh prepare load truth protection capacity client_of_ksmbd client_of_samba
step "hostile servers, captures and datasets"
"$SMBSCOPE_PYTHON" tests/trust/check.py --smbscope "$CARGO_TARGET_DIR/debug/smbscope" --fast
step "fuzzing"
fuzz/run.sh "$seconds"

count=$(sort -u "$SMBSCOPE_SKIPPED" | wc -l)
echo
echo "All tests passed in $((SECONDS - began)) s; $count skipped."
if [ "$count" -gt 0 ]; then
  echo "Skipped here:"
  sort -u "$SMBSCOPE_SKIPPED" | sed 's/^/  /'
fi
