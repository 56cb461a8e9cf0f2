#!/usr/bin/env bash
# Simulated users on a private Samba for half a minute, and the report of it.
#   scripts/demo.sh SMBSCOPE RUN     the program, and the run folder to make (and RUN.html next to it)
set -euo pipefail
smbscope=$1
run=$2
dir=$(mktemp -d)
trap '"$smbscope" lab down --dir "$dir/lab" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
chmod 755 "$dir"
"$smbscope" lab up --dir "$dir/lab" --users 20
"$smbscope" load prepare --lab "$dir/lab" --users 20 --scale 0.1
"$smbscope" load --lab "$dir/lab" --users 20 --scale 0.1 --ramp 10 --warm-up 5s --duration 20s --cool-down 1s \
  --out "$run" --force
"$smbscope" report "$run" --force --html "$run.html"
