#!/usr/bin/env bash
# Compiles for Windows and macOS what needs no C compiler for them, so that code behind `cfg` is not forgotten on Linux.
# The workflow `ci` compiles the whole program on both systems.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(-p smbscope-wire -p smbscope-tables -p smbscope-findings -p smbscope-plan -p smbscope-analysis -p smbscope-report -p smbscope-lab)
for target in x86_64-pc-windows-gnu x86_64-apple-darwin aarch64-apple-darwin; do
  # rustup prints only what it could not do.
  if ! rustup target list --installed 2>/dev/null | grep -qx "$target" && ! rustup --quiet target add "$target" 2>/dev/null; then
    echo "check-targets: skipped $target: rustup has no standard library for it here" >&2
    continue
  fi
  echo "check-targets: $target" >&2
  cargo check --locked --target "$target" "${packages[@]}"
done
