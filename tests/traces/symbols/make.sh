#!/bin/sh
# Makes driver.pdb with LLVM's compiler and linker (Debian: clang-14, lld-14). The other files here
# are made by the test `symbols` of smbscope-trace.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# The file contains the folder's name, and its GUID depends on all bytes.
work=/tmp/smbscope-symbols
mkdir "$work"
trap 'rm -rf "$work"' EXIT
cat >"$work/driver.c" <<'END'
int counter;
__declspec(noinline) int receive(int n) { counter += n; return counter * 3; }
__declspec(noinline) int poll_queue(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += receive(i);
    return sum;
}
int DriverEntry(void *a, void *b) { return poll_queue(counter); }
END
cd "$work"
clang-14 --target=x86_64-pc-windows-msvc -O1 -c driver.c -o driver.obj
lld-link-14 /driver /subsystem:native /nodefaultlib /entry:DriverEntry /debug /pdb:driver.pdb \
    /pdbaltpath:driver.pdb /timestamp:0 /out:driver.sys driver.obj
llvm-pdbutil-14 dump -summary -publics -section-headers driver.pdb
cp driver.pdb "$here/driver.pdb"
