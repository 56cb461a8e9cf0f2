#!/usr/bin/env bash
# Prints cargo's option for what can be built here: the probe (eBPF) on Linux with clang and libelf.
[ "$(uname -s)" = Linux ] || exit 0
if command -v clang >/dev/null 2>&1 && pkg-config --exists libelf zlib 2>/dev/null; then
  echo "--features smbscope/probe"
else
  echo "smbscope is built without its probe (smbscope record inside Samba): no clang, libelf or zlib to build it with" >&2
fi
