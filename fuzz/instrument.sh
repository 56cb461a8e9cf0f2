#!/bin/sh
# A wrapper that cargo calls instead of rustc (RUSTC_WRAPPER): our own crates are compiled so that libFuzzer
# sees which branches an input takes; dependencies are not instrumented, which halves the build.
rustc=$1
shift
case "$CARGO_PKG_NAME/$CARGO_CRATE_NAME" in
*/build_script_build)
    exec "$rustc" "$@"
    ;;
smbscope-*)
    exec "$rustc" "$@" -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*)
    exec "$rustc" "$@"
    ;;
esac
