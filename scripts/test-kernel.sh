#!/bin/sh
# Tests the probe on another kernel than this machine's: a recording of a load run must have the run's operations.
# scripts/test-kernel.sh [PACKAGE (default: the kernel of this Debian)] [TEST]
# Boots the package's kernel in QEMU (emulated: /dev/kvm inside a virtual machine is not reliable) with this
# machine's files. It checks rows, not times. Needs root and apt-get.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
package=${1:-$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')}
test=${2:-same::a_recording}
work=${SMBSCOPE_KERNEL_DIR:-$HOME/.cache/smbscope/kernel}
release=${package#linux-image-}

apt-get install -y --no-install-recommends qemu-system-x86 busybox-static kmod iproute2 e2fsprogs >/dev/null
mkdir -p "$work" && cd "$work"
[ -x venv/bin/vng ] || { python3 -m venv venv && venv/bin/pip install -q virtme-ng; }
[ -e "boot/vmlinuz-$release" ] || { apt-get download "$package" && dpkg-deb -x "$package"_*.deb .; }
mkdir -p /lib/modules
[ -e "/lib/modules/$release" ] || ln -s "$work/lib/modules/$release" "/lib/modules/$release"
# Also removes a link that a killed run left.
[ ! -L "/lib/modules/$release" ] || trap 'rm -f "/lib/modules/$release"' EXIT
depmod "$release"

cd "$root"
export CARGO_TARGET_DIR="$work/target"
binary=$(cargo test --locked -p smbscope-samba --features bpf --test truth --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*truth-[^"]*\)".*/\1/p' | tail -n 1)

# A share needs extended attributes, which the files that QEMU passes through do not have.
truncate -s 1G "$work/ext4.img" && mkfs.ext4 -q -F "$work/ext4.img"
cat >"$work/inside.sh" <<END
exec >"$work/log" 2>&1
uname -r
ip link set lo up
modprobe loop; modprobe ext4
mount -o loop "$work/ext4.img" /mnt && chmod 1777 /mnt
cd "$root/crates/samba"
CARGO_MANIFEST_DIR="$root/crates/samba" TMPDIR=/mnt timeout 600 "$binary" $test --nocapture --test-threads 1
echo "exit code \$?"
END
# The output of an earlier run does not count.
rm -f "$work/log"
PATH="$work/venv/bin:$PATH" timeout 900 vng --disable-kvm --run "$work/boot/vmlinuz-$release" --user root --cpus 2 \
    --memory 4G --rw --exec "sh $work/inside.sh" </dev/null >"$work/console" 2>&1 || true
cat "$work/log"
# A skipped test passes, which does not count here.
if grep -q '^skipped' "$work/log"; then exit 1; fi
grep -q '^exit code 0$' "$work/log"
