#!/usr/bin/env bash
# Prints the tables of docs/measurements/benchmarks.md: cat, a bare walk (the limit), tshark and smbscope; SQL against DuckDB;
# traces of processors.
#   bench/run.sh [REPETITIONS]     (5; the least CPU time of them counts, because the machine is shared)
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/smbscope/target}
bench/captures.sh
# With the features of `make build`, so that nothing is compiled twice.
cargo build --release --locked -p smbscope $(scripts/features.sh)
cargo build --release --quiet --manifest-path bench/walk/Cargo.toml --target-dir "$CARGO_TARGET_DIR/walk"
python3 bench/run.py --repeat "${1:-5}" \
  --captures "${SMBSCOPE_BENCH_DIR:-$HOME/.cache/smbscope/bench}" \
  --walk "$CARGO_TARGET_DIR/walk/release/walk" \
  --smbscope "$CARGO_TARGET_DIR/release/smbscope"
python3 bench/query.py --repeat "${1:-5}" --python "${SMBSCOPE_PYTHON:-$HOME/.cache/smbscope/venv/bin/python}" \
  --captures "${SMBSCOPE_BENCH_DIR:-$HOME/.cache/smbscope/bench}" --smbscope "$CARGO_TARGET_DIR/release/smbscope"
cargo build --release --locked --quiet -p smbscope-trace --example rows_speed
cargo build --release --locked --quiet -p smbscope-testing --bin flooded_server --bin windows_logs
cargo build --release --locked --quiet -p smbscope-capture --example speed
python3 bench/traces.py --repeat "${1:-5}" --dir "${SMBSCOPE_BENCH_DIR:-$HOME/.cache/smbscope/bench}" \
  --rows "$CARGO_TARGET_DIR/release/examples/rows_speed" --maker "$CARGO_TARGET_DIR/release/flooded_server" \
  --pcap "$CARGO_TARGET_DIR/release/examples/speed" --windows-logs "$CARGO_TARGET_DIR/release/windows_logs"
