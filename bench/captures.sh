#!/usr/bin/env bash
# Builds, once, the two captures of the benchmarks into
# ${SMBSCOPE_BENCH_DIR:-$HOME/.cache/smbscope/bench}:
#   bulk.pcap      at least 1 GB: reads and writes of 64 KiB
#   metadata.pcap  at least 300 MB and 500,000 operations
# and captures.txt: what is in them as tshark counts it.
# Prints their paths. Needs root (namespaces, packet capture) only to build;
# `--force` builds again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${SMBSCOPE_BENCH_DIR:-$HOME/.cache/smbscope/bench}
force=no
case "${1:-}" in
    "") ;;
    --force) force=yes ;;
    *) echo "usage: bench/captures.sh [--force]" >&2; exit 2 ;;
esac

if [ "$force" = yes ]; then
    rm -f "$dir"/{bulk,metadata}.pcap "$dir"/captures.txt
fi
if [ ! -s "$dir/bulk.pcap" ] || [ ! -s "$dir/metadata.pcap" ] || [ ! -s "$dir/captures.txt" ]; then
    mkdir -p "$dir"
    # the server, the clients and the recorder live in namespaces that end with this
    # program, however it ends
    python3 "$here/captures.py" "$dir" >&2
fi
printf '%s\n' "$dir/bulk.pcap" "$dir/metadata.pcap"
