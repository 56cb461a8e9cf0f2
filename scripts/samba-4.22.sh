#!/usr/bin/env bash
# Unpacks Samba 4.22 or later (the first with SMB3 directory leases) from Debian's archive into DIR, next to the
# system's Samba, of which nothing changes: apt works on lists and a cache of its own, dpkg only unpacks.
#   scripts/samba-4.22.sh [DIR]     DIR: ~/.cache/smbscope/samba-4.22
# DIR/bin holds commands that find their own libraries: `smbscope lab up --samba DIR`, or DIR/bin/smbclient.
# Needs no root. It works on Debian 12 (bookworm, from backports) and 13 (trixie).
set -euo pipefail
dir=${1:-${SMBSCOPE_CACHE:-$HOME/.cache/smbscope}/samba-4.22}
least=2:4.22
packages=(samba smbclient samba-testsuite)
programs=(sbin/smbd bin/smbclient bin/smbtorture bin/testparm bin/pdbedit bin/smbstatus bin/smbcontrol bin/tdbdump
  libexec/samba/samba-dcerpcd libexec/samba/rpcd_classic libexec/samba/rpcd_lsad libexec/samba/rpcd_winreg)

fail() { echo "samba-4.22: $*" >&2; exit 1; }

[ ! -x "$dir/bin/smbd" ] || { echo "samba-4.22: $dir has it already: $("$dir/bin/smbd" --version)" >&2; exit 0; }
[ ! -e "$dir" ] || [ -z "$(ls -A "$dir")" ] || fail "$dir is not empty: name another folder, or remove it"
for program in apt-get dpkg-deb dpkg; do
  command -v $program >/dev/null || fail "$program is missing: this works on Debian only; elsewhere build Samba and give its folder to lab up --samba"
done
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
case $codename in
  bookworm) suites=(bookworm bookworm-backports) ;;
  trixie) suites=(trixie) ;;
  *) fail "Debian 12 (bookworm) or 13 (trixie) is needed, this is ${codename:-unknown}: build Samba and give its folder to lab up --samba" ;;
esac
# The mirror that this machine uses, in either form of apt's sources, or else Debian's own.
mirror=$({ grep -rhsE '^(deb|URIs:)[[:space:]]' /etc/apt/sources.list /etc/apt/sources.list.d || true; } |
  grep -oE 'https?://[^[:space:]]+/debian/?([[:space:]]|$)' | head -n 1 | tr -d '[:space:]')
mirror=${mirror:-http://deb.debian.org/debian}

# Next to the destination, so that the last step is a rename within one file system.
mkdir -p "$(dirname "$dir")"
work=$(mktemp -d "$(dirname "$dir")/.samba-4.22.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial "$work"/{none,tree/root,tree/bin}
for suite in "${suites[@]}"; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$work/sources.list"
apt() {
  # The system's list of installed packages names the libraries that are there already; it is only read.
  apt-get -qq -y -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts="$work/none" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::Archives="$work/archives" -o Dir::Cache::pkgcache= \
    -o Dir::Cache::srcpkgcache= -o Dir::Log="$work" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o APT::Install-Recommends=false -o Acquire::Languages=none -o Acquire::Retries=3 "$@" >"$work/log" 2>&1 </dev/null ||
    fail "apt-get: $(grep -E '^(E|W|Err)' "$work/log" | tail -n 3 | tr '\n' ' ')"
}
apt update
apt --download-only --reinstall -t "${suites[-1]}" install "${packages[@]}"
ls "$work"/archives/samba_*.deb >/dev/null 2>&1 || fail "apt fetched no samba package from $mirror ${suites[-1]}"
version=$(dpkg-deb -f "$work"/archives/samba_*.deb Version)
dpkg --compare-versions "$version" ge "$least" || fail "$mirror has Samba $version in ${suites[-1]}, not 4.22 or later"
for deb in "$work"/archives/*.deb; do dpkg-deb -x "$deb" "$work/tree/root"; done

# A command finds its libraries wherever DIR is moved to.
multiarch=$(basename "$(dirname "$(ls -d "$work"/tree/root/usr/lib/*/samba)")")
for program in "${programs[@]}"; do
  [ -x "$work/tree/root/usr/$program" ] || continue
  cat >"$work/tree/bin/${program##*/}" <<END
#!/bin/sh
root=\$(dirname "\$(readlink -f "\$0")")/../root/usr
LD_LIBRARY_PATH=\$root/lib/$multiarch:\$root/lib/$multiarch/samba exec "\$root/$program" "\$@"
END
  chmod +x "$work/tree/bin/${program##*/}"
done
"$work/tree/bin/smbd" --version >/dev/null || fail "the unpacked smbd does not start"
chmod 755 "$work/tree"
rmdir "$dir" 2>/dev/null || true
mv -T "$work/tree" "$dir"
"$dir/bin/smbd" --version
