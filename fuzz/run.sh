#!/bin/sh
# Builds all fuzz targets and runs each for some seconds: fuzz/run.sh [SECONDS, default 10]
# [TARGET...]. Exits with 1 when a target finds something; the input stays in fuzz/artifacts.
# Needs neither the nightly compiler nor cargo-fuzz: the targets run no unsafe code, so that there
# is nothing for a sanitizer to see, and the stable compiler has all that libFuzzer needs.
set -eu

seconds=${1:-10}
[ $# -gt 0 ] && shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
all=$(cd "$here/src/bin" && ls -- *.rs | sed 's/\.rs$//' | grep -vx seeds)
targets=${*:-$all}
export CARGO_TARGET_DIR="${FUZZ_TARGET_DIR:-$here/target}"

cd "$here"
RUSTC_WRAPPER="$here/instrument.sh" cargo build --release --locked --bins

work=$(mktemp -d)
trap 'rm -rf "$work" /dev/shm/smbscope-fuzz-* 2>/dev/null' EXIT
bin="$CARGO_TARGET_DIR/release"
(cd "$work" && mkdir $all)
"$bin/seeds" "$work" "$root"/tests/fixtures/*.pcap* "$root"/tests/fixtures/*.keys "$root"/tests/fixtures/*.keytab "$root"/tests/traces/*.txt \
    $(find "$root/tests/traces/symbols" -type f -name "*.pdb")

found=0
for target in $targets; do
    case "$target" in
    keys | auth | frame | links) length=1024 ;;
    *) length=8192 ;;
    esac
    mkdir -p "$here/artifacts/$target"
    log="$work/$target.log"
    echo "fuzz: $target for $seconds s"
    if "$bin/$target" "$work/$target" -max_total_time="$seconds" -max_len=$length \
        -rss_limit_mb=1024 -timeout=10 -artifact_prefix="$here/artifacts/$target/" \
        >"$log" 2>&1; then
        tail -n 1 "$log"
    else
        found=1
        tail -n 40 "$log"
        echo "fuzz: $target found something: see fuzz/artifacts/$target" >&2
    fi
done
exit $found
