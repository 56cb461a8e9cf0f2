#!/usr/bin/env bash
# Tests smbscope against servers in QEMU: ksmbd, the SMB server of the Linux kernel, and Samba on a virtual disk that
# loses its power.
# scripts/test-servers.sh [NAME OF A CHECK...] (default: all; tests/servers/ksmbd.py lists them)
# The guest has Debian's kernel and packages (downloaded, not installed) and is emulated: /dev/kvm inside a virtual
# machine is not reliable. Skipped with a reason when QEMU or the package mirror is absent; with
# SMBSCOPE_NO_SKIP=1 that is a failure.
#   SMBSCOPE              the program to test (default: a development build without SQL)
#   SMBSCOPE_SERVERS_DIR  where packages and results are (default: ~/.cache/smbscope/servers)
#   SMBSCOPE_SUITE        Debian's suite in the guest (default: trixie)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=${SMBSCOPE_SERVERS_DIR:-$HOME/.cache/smbscope/servers}
suite=${SMBSCOPE_SUITE:-trixie}
PATH=$PATH:/usr/sbin:/sbin

skip() {
  echo "skipped: test-servers: $*"
  [ -z "${SMBSCOPE_SKIPPED:-}" ] || echo "test-servers: $*" >>"$SMBSCOPE_SKIPPED"
  [ -z "${SMBSCOPE_NO_SKIP:-}" ] || exit 1
  exit 0
}

for program in qemu-system-x86_64 modprobe depmod cpio xz mkfs.ext4 tshark python3; do
  command -v "$program" >/dev/null || skip "$program is not installed (scripts/setup.sh servers)"
done

# What the guest is made of. Not Debian 12: its kernel (6.1.192) refuses every share of its ksmbd-tools (3.4.7).
packages="ksmbd-tools busybox-static libc6 libglib2.0-0t64 libnl-3-200 libnl-genl-3-200 libpcre2-8-0 libatomic1 libffi8"
guest=$work/$suite
if [ ! -e "$guest/complete" ]; then
  command -v apt-get >/dev/null || skip "apt-get is not installed"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -e "$keys" ] || skip "$keys does not exist (package debian-archive-keyring)"
  echo "downloading the guest's packages from Debian $suite" >&2
  rm -rf "$guest" && mkdir -p "$guest/lists/partial" "$guest/archives/partial" "$guest/debs" "$guest/files"
  cd "$guest"
  echo "deb [signed-by=$keys] ${SMBSCOPE_MIRROR:-http://deb.debian.org/debian} $suite main" >sources.list
  touch status
  # An apt of its own: it neither reads nor changes what is installed here.
  cat >apt.conf <<END
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::http::Timeout "20";
Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Dir::Etc::SourceList "$guest/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$guest/lists";
Dir::State::Status "$guest/status";
Dir::Cache "$guest";
END
  export APT_CONFIG=$guest/apt.conf
  timeout 180 apt-get -qq update >apt.log 2>&1 || skip "the package mirror does not answer ($guest/apt.log)"
  # apt-get update succeeds without an answer too.
  kernel=$(apt-cache depends linux-image-amd64 2>>apt.log | awk '/Depends: linux-image-[0-9]/ { print $2; exit }') || true
  [ -n "$kernel" ] || skip "the package mirror does not answer ($guest/apt.log)"
  # shellcheck disable=SC2086
  (cd debs && timeout 300 apt-get -qq download "$kernel" $packages) >>apt.log 2>&1 ||
    skip "the package mirror does not deliver ($guest/apt.log)"
  for package in debs/*.deb; do dpkg-deb -x "$package" files; done
  dpkg-deb -f debs/ksmbd-tools_*.deb Version >tools-version
  rm -rf debs lists archives ./*.bin
  touch complete
fi

# The guest's files: an initial RAM disk with busybox, ksmbd-tools, their libraries and the kernel's modules.
cd "$guest"
files=$guest/files
[ -e "$files/lib" ] || ln -s usr/lib "$files/lib"
release=$(basename "$files"/lib/modules/*)
if [ ! -e initrd ] || [ "$root/tests/servers/guest.sh" -nt initrd ] || [ "$root/scripts/test-servers.sh" -nt initrd ]; then
  rm -rf root && mkdir -p root/bin root/lib64 root/libraries root/modules
  libraries=$files/usr/lib/x86_64-linux-gnu
  cp "$files/usr/bin/busybox" root/bin/busybox
  cp "$files/usr/libexec/ksmbd.tools" root/bin/ksmbd.tools
  for name in mountd adduser control; do ln -s ksmbd.tools "root/bin/ksmbd.$name"; done
  cp -L "$libraries/ld-linux-x86-64.so.2" root/lib64/
  for name in libc libm libglib-2.0 libnl-3 libnl-genl-3 libpcre2-8 libatomic libffi; do
    for library in "$libraries/$name".so.*; do
      if [ -f "$library" ]; then cp -L "$library" root/libraries/; fi
    done
  done
  # The converter between UTF-8 and UTF-16 for passwords.
  mkdir -p root/usr/lib/x86_64-linux-gnu/gconv
  cp -r "$libraries"/gconv/UTF-16.so "$libraries"/gconv/gconv-modules* root/usr/lib/x86_64-linux-gnu/gconv/
  depmod -b "$files" "$release"
  for module in virtio_pci virtio_net virtio_blk virtio_rng ext4 cmac hmac md5 sha256_generic sha512_generic \
    aes_generic aesni_intel ccm gcm ctr ecb nls_utf8 crc32_generic ksmbd cifs; do
    modprobe -d "$files" -S "$release" --show-depends "$module" 2>/dev/null || true
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >paths
  while read -r path; do
    name=$(basename "$path" .xz)
    case $path in
      *.xz) xz -dc "$path" >"root/modules/$name" ;;
      *) cp "$path" "root/modules/$name" ;;
    esac
    echo "$name"
  done <paths >root/modules/order
  for module in ksmbd cifs; do
    [ -e "root/modules/$module.ko" ] || { echo "test-servers: kernel $release has no $module" >&2; exit 1; }
  done
  cp "$root/tests/servers/guest.sh" root/init && chmod 755 root/init
  (cd root && find . | cpio -o -H newc --quiet | gzip -1) >initrd.new
  mv initrd.new initrd
  rm -rf root paths
fi

# The same with this machine's Samba in a tree of its own: a second archive behind the first (Linux takes several).
smbd=$(command -v smbd || true)
if [ -n "$smbd" ] && { [ ! -e initrd-samba ] || [ initrd -nt initrd-samba ] || [ "$smbd" -nt initrd-samba ]; }; then
  rm -rf tree && mkdir -p tree/samba/usr/sbin
  cp -L "$smbd" tree/samba/usr/sbin/smbd
  ldd "$smbd" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r library; do
    mkdir -p "tree/samba$(dirname "$library")"
    cp -L "$library" "tree/samba$library"
  done
  (cd tree && find . | cpio -o -H newc --quiet | gzip -1) >samba.new
  cat initrd samba.new >initrd-samba.new
  mv initrd-samba.new initrd-samba
  rm -rf tree samba.new
fi

cd "$root"
if [ -z "${SMBSCOPE:-}" ]; then
  cargo build --quiet --locked -p smbscope --no-default-features
  SMBSCOPE=${CARGO_TARGET_DIR:-target}/debug/smbscope
fi
exec python3 tests/servers/ksmbd.py --smbscope "$SMBSCOPE" --kernel "$files/boot/vmlinuz-$release" \
  --initrd "$guest/initrd" --samba "$guest/initrd-samba" --tools "$(cat "$guest/tools-version")" --work "$work/run" "$@"
