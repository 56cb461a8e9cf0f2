#!/bin/busybox sh
# The first process in the guest of scripts/test-servers.sh: starts ksmbd (or Samba, with server=samba on the kernel's
# command line) with one share and four users, then runs the commands that arrive on the second serial port.
export PATH=/bin LD_LIBRARY_PATH=/libraries
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /mnt /share /tmp /run /etc/ksmbd
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
echo "guest: kernel $(uname -r)"
while read -r module; do insmod "/modules/$module" || echo "guest: no $module"; done </modules/order
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
mount -t ext4 /dev/vda /share && chmod 1777 /share
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd
echo 'root:x:0:' >/etc/group
option() { # NAME: its value on the kernel's command line
  tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"
}
samba() { # in its own tree, with the libraries that it was built for
  cd /samba
  mkdir -p proc dev etc tmp run share state private lock cache pid ncalrpc log
  chmod 1777 tmp
  mount --bind /proc proc && mount --bind /dev dev && mount --bind /share share
  { echo 'root:x:0:0::/:/bin/sh' && echo 'nobody:x:65534:65534::/:/bin/sh'; } >etc/passwd
  { echo 'root:x:0:' && echo 'nogroup:x:65534:'; } >etc/group
  for number in 1 2 3 4; do
    echo "user0000$number:x:100$number:65534::/:/bin/sh" >>etc/passwd
    # The hash of the password "secret" (MS-NLMP NTOWFv1).
    echo "user0000$number:100$number:XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX:878D8014606CDA29677A44EFA1353FC7:[U          ]:LCT-00000001:"
  done >private/smbpasswd
  cat >etc/smb.conf <<END
[global]
	server role = standalone
	netbios name = SAMBA
	disable netbios = yes
	disable spoolss = yes
	load printers = no
	passdb backend = smbpasswd:/private/smbpasswd
	private dir = /private
	state directory = /state
	lock directory = /lock
	cache directory = /cache
	pid directory = /pid
	ncalrpc dir = /ncalrpc
	log file = /log/log
	strict sync = $(option strict_sync)
[home]
	path = /share
	read only = no
	force user = root
END
  env -i PATH=/usr/sbin chroot /samba /usr/sbin/smbd -D -s /etc/smb.conf || echo "guest: no smbd"
}
ksmbd() {
cat >/etc/ksmbd/ksmbd.conf <<END
[global]
	netbios name = KSMBD
[home]
	path = /share
	read only = no
	force user = root
	force group = root
END
cd /etc/ksmbd
for number in 1 2 3 4; do
  ksmbd.adduser -C ksmbd.conf -P ksmbdpwd.db -a "user0000$number" -p secret >/tmp/adduser 2>&1 || cat /tmp/adduser
done
ksmbd.mountd -C ksmbd.conf -P ksmbdpwd.db || echo "guest: no ksmbd.mountd"
}
case $(option server) in
  samba) samba ;;
  *) ksmbd ;;
esac
cd /
# ksmbd listens as soon as its user-space part has sent it the configuration.
tries=0
until netstat -ltn | grep -q ':445 ' || [ $tries -ge 60 ]; do
  sleep 1
  tries=$((tries + 1))
done
netstat -ltn
# Opened before the host sends something: opening a serial port empties it. Not an interactive shell: it neither
# repeats its input nor prompts.
exec 3<>/dev/ttyS1
stty raw -echo <&3
echo "guest: ready"
exec <&3 >&3 2>&3
while read -r line; do eval "$line"; done
