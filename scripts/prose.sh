#!/usr/bin/env bash
# Checks the prose: constructions that are hard to read (scripts/prose.txt), references to files that do
# not exist, the form of changelog.d, and spelling (typos).
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SMBSCOPE_CACHE:-$HOME/.cache/smbscope}
python3 scripts/prose.py --self-test
python3 scripts/prose.py
python3 scripts/links.py
python3 scripts/changelog.py --check
typos=$(command -v typos || echo "$cache/venv/bin/typos")
if [ -x "$typos" ]; then
  "$typos"
else
  echo "prose: the program typos is not installed (scripts/setup.sh check installs it)" >&2
  exit 1
fi
