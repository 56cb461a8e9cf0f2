#!/usr/bin/env bash
# Runs smbscope.exe under Wine: packaging/wine.sh SMBSCOPE.EXE ARGUMENTS...
# Wine before 9 has no bcryptprimitives.dll, from which Rust's library takes random numbers. Where it is missing, a stand-in
# that forwards to advapi32 is put into the prefix; it is compiled by mingw-w64 (WINDOWS_ROOT: that of packaging/windows.sh).
set -euo pipefail
exe=$1
shift
export WINEPREFIX=${WINEPREFIX:-$HOME/.cache/smbscope/wine} WINEDEBUG=${WINEDEBUG:--all}
system=$WINEPREFIX/drive_c/windows/system32
if [ ! -d "$system" ]; then
  mkdir -p "$WINEPREFIX"
  wineboot --init >/dev/null 2>&1
  wineserver --wait
fi
if [ ! -e "$system/bcryptprimitives.dll" ]; then
  root=${WINDOWS_ROOT:-$HOME/.cache/smbscope/windows}
  cat >"$root/tmp/stub.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, (ULONG)size); }
C
  chroot "$root" x86_64-w64-mingw32-gcc -shared -o /tmp/bcryptprimitives.dll /tmp/stub.c -ladvapi32
  cp "$root/tmp/bcryptprimitives.dll" "$system/"
fi
exec wine "$exe" "$@"
