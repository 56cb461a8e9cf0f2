#!/usr/bin/env bash
# Installs each package of a folder on clean systems and uses it: packaging/check.sh DIR [SUITE...]
#   SUITE: Debian suites to try the .deb on (default: bookworm trixie)
# For each: install, report on a capture, manual page, completion, uninstall, and what is left. Also the .tar.gz and the .rpm
# in the first root, the wheel in an empty environment, and the .zip under Wine where there is one. Needs root, debootstrap.
# Prints a table in Markdown. Exits with 1 if anything failed.
set -euo pipefail
packages=$(cd "${1:?usage: packaging/check.sh DIR [SUITE...]}" && pwd)
shift
[ $# -gt 0 ] || set -- bookworm trixie
source=$(cd "$(dirname "$0")/.." && pwd)
cache=${SMBSCOPE_CACHE:-$HOME/.cache/smbscope}
archive=${DEBIAN_ARCHIVE:-http://deb.debian.org/debian}
capture=$source/tests/fixtures/findings/small-reads.pcap.gz
work=$(mktemp -d)
failed=0
trap 'umount "$work"/*/proc 2>/dev/null; rm -rf "$work"' EXIT

row() { printf '| %s | %s | %s | %s |\n' "$@"; }

tried() { # PACKAGE SYSTEM FUNCTION: one row; the function's output is shown if it fails
  local begin log=$work/log
  begin=$(date +%s%N)
  if (set -e; "$3" "${@:4}") >"$log" 2>&1; then
    row "$1" "$2" "works" "$(tail -n 1 "$log"), $((($(date +%s%N) - begin) / 1000000)) ms in all"
  else
    failed=1
    row "$1" "$2" "FAILS" "see below"
    sed 's/^/    /' "$log" >&2
  fi
}

first_answer() { # COMMAND...: its time on the capture, in milliseconds; the verdict must be right
  local begin end
  begin=$(date +%s%N)
  "$@" report "${inside:-$capture}" >"$work/answer" 2>"$work/errors" || { cat "$work/errors"; return 1; }
  end=$(date +%s%N)
  grep -q "Slow for users: reads go one at a time" "$work/answer" || { cat "$work/answer"; return 1; }
  echo "first answer after $(((end - begin) / 1000000)) ms"
}

system_root() { # SUITE: a clean copy of it in $work/root
  local tar=$cache/roots/$1.tar
  if [ ! -e "$tar" ]; then
    mkdir -p "$cache/roots"
    debootstrap --variant=minbase "$1" "$work/$1" "$archive" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log"; return 1; }
    tar -C "$work/$1" -cf "$tar.part" --exclude ./proc --exclude ./sys .
    mv "$tar.part" "$tar"
    rm -rf "${work:?}/$1"
  fi
  rm -rf "$work/root"
  mkdir -p "$work/root/proc"
  tar -C "$work/root" -xf "$tar"
  cp /etc/resolv.conf "$work/root/etc/"
  cp "$capture" "$work/root/capture.pcap.gz"
  # What was there before: everything that is new afterwards came from the package.
  (cd "$work/root" && find . -path ./proc -prune -o -path ./var/log -prune -o -print | sort) >"$work/before"
}

inside_root() { inside=/capture.pcap.gz first_answer chroot "$work/root" "$@"; }

is_complete() { # manual page, completion and service of an installed package
  [ -s "$work/root/usr/share/man/man1/smbscope-report.1.gz" ]
  zcat "$work/root/usr/share/man/man1/smbscope.1.gz" | grep -q "^.TH"
  bash -c 'source "$1" && complete -p smbscope' sh "$work/root/usr/share/bash-completion/completions/smbscope" >/dev/null
  [ -s "$work/root/usr/lib/systemd/system/smbscope-record.service" ]
}

nothing_left() {
  local left
  left=$(cd "$work/root" && find . -path ./proc -prune -o -path ./var/log -prune -o -print | sort | comm -13 "$work/before" - |
    grep -v -e '^./var/lib/dpkg' -e '^./var/lib/apt' -e '^./var/cache' -e '^./var/lib/rpm' -e '^./usr/lib/sysimage' -e '^./[^/]*\.\(deb\|rpm\)$' || true)
  [ -z "$left" ] || { echo "left behind:"; echo "$left"; return 1; }
}

deb() { # SUITE
  system_root "$1"
  cp "$packages"/smbscope_*_amd64.deb "$work/root/smbscope.deb"
  mount -t proc proc "$work/root/proc"
  chroot "$work/root" apt-get -qq update
  DEBIAN_FRONTEND=noninteractive chroot "$work/root" apt-get -qq install -y --no-install-recommends /smbscope.deb
  is_complete
  local answer
  answer=$(inside_root /usr/bin/smbscope)
  DEBIAN_FRONTEND=noninteractive chroot "$work/root" apt-get -qq purge -y smbscope
  umount "$work/root/proc"
  nothing_left
  echo "$answer"
}

rpm_package() { # without its own distribution: Debian's rpm, and a database of its own
  system_root "$1"
  cp "$packages"/smbscope-*.x86_64.rpm "$work/root/smbscope.rpm"
  mount -t proc proc "$work/root/proc"
  rpm --root "$work/root" --initdb
  rpm --root "$work/root" --nodeps -i "$work/root/smbscope.rpm"
  is_complete
  local answer
  answer=$(inside_root /usr/bin/smbscope)
  rpm --root "$work/root" -e smbscope
  umount "$work/root/proc"
  nothing_left
  echo "$answer"
}

archive_of_linux() { # SUITE
  system_root "$1"
  tar -C "$work/root/opt" -xzf "$packages"/smbscope-*-x86_64-linux.tar.gz
  inside_root "$(cd "$work/root" && ls -d opt/smbscope-*-linux/smbscope | sed 's,^,/,')"
}

wheel() {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$packages"/smbscope-*manylinux*.whl pandas
  env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$work" "$work/venv/bin/python" "$source/packaging/python/tests/example.py" "$capture"
  first_answer env -i PATH="$work/venv/bin" smbscope
}

wine() {
  export WINEPREFIX=$work/wine WINEDEBUG=-all
  (cd "$work" && python3 -m zipfile -e "$packages"/smbscope-*-windows.zip exe)
  cp "$capture" "$work/capture.pcap.gz"
  local exe
  exe=$(ls "$work"/exe/*/smbscope.exe)
  "$source/packaging/wine.sh" "$exe" --version
  (cd "$work" && inside=capture.pcap.gz first_answer "$source/packaging/wine.sh" "$exe")
}

echo "| package | system | result | |"
echo "|---|---|---|---|"
for suite in "$@"; do
  tried .deb "Debian $suite, minimal" deb "$suite"
done
tried .tar.gz "Debian $1, minimal" archive_of_linux "$1"
if command -v rpm >/dev/null; then tried .rpm "Debian $1 with rpm" rpm_package "$1"; fi
tried .whl "empty venv, $(python3 --version)" wheel
if compgen -G "$packages/*-windows.zip" >/dev/null; then
  if command -v wine >/dev/null; then tried .zip "$(wine --version) (Wine), empty prefix" wine; else row .zip Wine "not tried" "no Wine on this machine"; fi
fi
exit "$failed"
