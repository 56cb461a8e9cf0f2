#!/usr/bin/env python3
"""The hash and the processor of each connection on an adapter with RSS, against the prediction of `smbscope plan cores`.

QEMU's virtio-net with `rss=on,hash=on` computes Toeplitz with the key and the table that the guest's driver sets, so that
it is an implementation independent of ours. The guest has Debian's kernel (scripts/test-servers.sh downloads it), four
processors and four queues. The test program crates/plan/tests/steering.rs runs in the guest and reads the adapter as
`plan cores` does; the host sends 400 connections into the guest's tap interface, once with RSS alone, once with RPS.

    make verify-rss      (needs root, qemu-system-x86_64, cpio, ethtool, and one run of make test-servers for the guest)
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

GUEST = Path(os.environ.get("SMBSCOPE_SERVERS_DIR", Path.home() / ".cache/smbscope/servers")) / "trixie"
MODULES = ["virtio_pci", "virtio_net"]
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
echo "guest: kernel $(uname -r)"
while read -r module; do insmod "/modules/$module" || echo "guest: no $module"; done </modules/order
# Without it the driver does not pass on the hash, and RPS uses one of the kernel.
ethtool -K eth0 rxhash on
ip link set eth0 up
SMBSCOPE_STEERING_ADAPTER=eth0 /steering --exact adapter --nocapture --test-threads 1
echo "guest: ended $?"
poweroff -f
"""


def skip(reason):
    print(f"skipped: rss: {reason}")
    if path := os.environ.get("SMBSCOPE_SKIPPED"):
        with open(path, "a") as file:
            file.write(f"tests/live/rss.py: {reason}\n")
    sys.exit(0)


def initial_disk(work, program, release):
    """Writes the guest's files; returns the path."""
    root = work / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("bin", "modules"):
        (root / folder).mkdir(parents=True)
    shutil.copy(GUEST / "files/usr/bin/busybox", root / "bin/busybox")
    shutil.copy(program, root / "steering")
    shutil.copy(shutil.which("ethtool"), root / "bin/ethtool")
    for copied in (root / "steering", root / "bin/ethtool"):
        listed = subprocess.run(["ldd", copied], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    order = []
    for module in MODULES:
        command = ["modprobe", "-d", GUEST / "files", "-S", release, "--show-depends", module]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for path in re.findall(r"^insmod (\S+)", shown, re.M):
            name = Path(path).name.removesuffix(".xz")
            if name not in order:
                order.append(name)
                data = Path(path).read_bytes()
                if path.endswith(".xz"):
                    data = subprocess.run(["xz", "-dc"], input=data, capture_output=True, check=True).stdout
                (root / "modules" / name).write_bytes(data)
    (root / "modules/order").write_text("".join(f"{name}\n" for name in order))
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, capture_output=True, check=True)
    path = work / "initrd"
    path.write_bytes(gzip.compress(archive.stdout, 1))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = "the test program `steering` of crates/plan (default: the one in cargo's messages on standard input)"
    parser.add_argument("program", type=Path, nargs="?", help=words)
    parser.add_argument("--work", type=Path, default=GUEST.parent / "rss", help="where the guest's files are")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in ("qemu-system-x86_64", "cpio", "modprobe", "ip", "unshare", "ethtool"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        skip("it needs root and /dev/net/tun")
    kernels = sorted((GUEST / "files/boot").glob("vmlinuz-*"))
    if not kernels:
        skip(f"no kernel below {GUEST} (scripts/test-servers.sh downloads it)")
    if not arguments.program:
        messages = [json.loads(line) for line in sys.stdin if line.startswith("{")]
        built = [message for message in messages if message.get("executable")]
        programs = [message["executable"] for message in built if message["target"]["name"] == "steering"]
        if not programs:
            sys.exit("rss: cargo built no test program `steering`")
        arguments.program = Path(programs[0])
    if not os.environ.get("SMBSCOPE_RSS_INSIDE"):
        # A network of its own, which ends with the processes in it.
        os.environ["SMBSCOPE_RSS_INSIDE"] = "1"
        command = ["unshare", "--net", sys.executable, __file__, arguments.program, "--work", arguments.work]
        os.execvp("unshare", command)
    kernel = kernels[-1]
    arguments.work.mkdir(parents=True, exist_ok=True)
    disk = initial_disk(arguments.work, arguments.program, kernel.name.removeprefix("vmlinuz-"))
    subprocess.run(["ip", "tuntap", "add", "tap0", "mode", "tap", "multi_queue"], check=True)
    subprocess.run(["ip", "link", "set", "tap0", "addrgenmode", "none", "up"], check=True)
    console = arguments.work / "console"
    console.unlink(missing_ok=True)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", "4", "-m", "512"]
    command += ["-nodefaults", "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", disk]
    command += ["-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-serial", f"file:{console}"]
    command += ["-netdev", "tap,id=net0,ifname=tap0,queues=4,script=no,downscript=no,vhost=off"]
    command += ["-device", "virtio-net-pci,netdev=net0,mac=02:00:5e:00:00:01,mq=on,vectors=10,rss=on,hash=on,romfile="]
    guest = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    text, rounds, end = "", 0, time.monotonic() + 240
    try:
        while guest.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
            text = console.read_text(errors="replace") if console.exists() else ""
            if f"guest: listens {rounds}" in text:
                time.sleep(0.5)
                environment = {**os.environ, "SMBSCOPE_STEERING_SEND": "tap0"}
                sender = [arguments.program, "--exact", "send_into"]
                subprocess.run(sender, env=environment, check=True, stdout=subprocess.DEVNULL)
                rounds += 1
    finally:
        guest.kill()
        guest.wait(10)
    text = console.read_text(errors="replace") if console.exists() else ""
    print("\n".join(line for line in text.replace("\r", "").splitlines() if line.startswith("guest:")))
    found = re.findall(r"guest: RPS to .*: (\d+) hashes and (\d+) processors of (\d+) connections.* (\d+) lost", text)
    if len(found) != 2 or any((a, b, d) != (c, c, "0") for a, b, c, d in found):
        sys.exit(f"rss: not all as predicted:\n{text[-3000:]}")
    print("rss: all hashes and processors as predicted")


if __name__ == "__main__":
    main()
