#!/usr/bin/env bash
# The fast checks before a commit: format, lints, prose, unit tests. Uses neither Samba nor, unless a
# file of the store or of the program changed, DataFusion.
#   scripts/check.sh          compares with the branch main (or with HEAD on main) to see what changed
#   scripts/check.sh --all    as if everything had changed
set -euo pipefail
cd "$(dirname "$0")/.."
features=$(scripts/features.sh)

base=$(git merge-base HEAD main 2>/dev/null || echo HEAD)
changed=$( (git diff --name-only "$base"; git ls-files --others --exclude-standard) 2>/dev/null || true)
sql=no
if [ "${1:-}" = --all ] || grep -qE '^(Cargo\.(toml|lock)|crates/(store|smbscope)/)' <<<"$changed"; then sql=yes; fi

# Not `store` and `smbscope`: these link DataFusion unless they are built without the feature sql.
plain=(wire tables capture samba counters client lab load analysis report)
packages=()
for name in "${plain[@]}"; do packages+=(-p "smbscope-$name"); done

cargo fmt --check
scripts/prose.sh
cargo clippy --locked "${packages[@]}" --all-targets -- -D warnings
cargo test --locked "${packages[@]}" --lib --quiet
cargo test --locked -p smbscope-capture -p smbscope-wire -p smbscope-report --tests --quiet
if [ $sql = yes ]; then
  # shellcheck disable=SC2086
  cargo clippy --locked -p smbscope-store -p smbscope $features --all-targets -- -D warnings
  # shellcheck disable=SC2086
  cargo test --locked -p smbscope-store -p smbscope $features --lib --bins --test architecture --quiet
else
  echo "check: store and smbscope did not change; their tests were left out (scripts/check.sh --all runs them)"
fi
