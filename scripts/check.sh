#!/usr/bin/env bash
# The fast checks before a commit: format, prose, lints, unit tests. Needs no Samba.
# It selects the same packages with the same features as scripts/test.sh, so that both share what they compile;
# DataFusion is compiled again only when its version or features change.
set -euo pipefail
cd "$(dirname "$0")/.."
features=$(scripts/features.sh)
began=$SECONDS

cargo fmt --check
scripts/prose.sh
scripts/build-size.py crates
# shellcheck disable=SC2086
cargo clippy --locked --workspace --all-targets $features -- -D warnings
# shellcheck disable=SC2086
cargo test --locked --workspace $features --lib --bins --test architecture --test report --quiet
echo "check: all passed in $((SECONDS - began)) s"
