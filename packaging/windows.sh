#!/usr/bin/env bash
# Builds smbscope.exe on Linux:
#   packaging/windows.sh ROOT [CARGO-ARGUMENTS...]     default: the program that `make packages` ships
#
# ROOT is a folder (3 GB) that the first call fills with Debian unstable's rustc, its library sources and mingw-w64, because
# a toolchain without a standard library for Windows cannot get one offline: the library is compiled from its sources
# (-Zbuild-std). The program is ROOT/target/x86_64-pc-windows-gnu/dist/smbscope.exe. Needs root and debootstrap.
set -euo pipefail
root=${1:?usage: packaging/windows.sh ROOT [CARGO-ARGUMENTS...]}
shift
source=$(cd "$(dirname "$0")/.." && pwd)
archive=${DEBIAN_ARCHIVE:-http://deb.debian.org/debian}
included=rustc,cargo,rust-src,gcc-mingw-w64-x86-64,g++-mingw-w64-x86-64,cmake,nasm,ca-certificates,gcc,libc6-dev
if [ ! -e "$root/usr/lib/rustlib/src" ] || [ ! -e "$root/usr/share/mingw-w64" ]; then
  echo "windows: making $root of Debian unstable" >&2
  debootstrap --variant=minbase --include="$included" sid "$root" "$archive" >"$root.log" 2>&1 \
    || { tail -n 5 "$root.log" >&2; exit 1; }
fi
mkdir -p "$root"/{src,cargo,target}
mounted=()
unmount() { for place in "${mounted[@]}"; do umount "$place"; done; }
trap unmount EXIT
mount_once() { # TYPE-OPTIONS... PLACE
  mountpoint -q "${!#}" || { mount "$@"; mounted+=("${!#}"); }
}
mount_once -t proc proc "$root/proc"
mount_once --bind "$source" "$root/src"
cp /etc/resolv.conf "$root/etc/resolv.conf"
certificates=()
if [ -n "${SSL_CERT_FILE:-}" ]; then
  cp "$SSL_CERT_FILE" "$root/certificates.pem"
  certificates=(SSL_CERT_FILE=/certificates.pem CARGO_HTTP_CAINFO=/certificates.pem)
fi
[ $# -gt 0 ] || set -- build --profile dist --locked -p smbscope
command=$1
shift
# No path of this machine is in the program.
env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin CARGO_HOME=/cargo CARGO_TARGET_DIR=/target RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 \
  RUSTFLAGS="--remap-path-prefix=/cargo=cargo --remap-path-prefix=/src=smbscope" \
  ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "${certificates[@]}" \
  chroot "$root" sh -c 'cd /src && command=$1 && shift && exec cargo "$command" --target x86_64-pc-windows-gnu -Zbuild-std=std,panic_abort "$@"' \
  sh "$command" "$@"
