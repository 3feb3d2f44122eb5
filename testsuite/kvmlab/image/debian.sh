# A Debian that cloud-init configures, as a qcow2 that BIOS boots: one ext4 on the whole
# disk, without a partition table. Called with the release, the packages, an empty
# folder to work in, and the file to make; in a mount namespace of its own, so that no
# mount outlives it.
set -euo pipefail
release=$1 packages=$2 work=$3 out=$4
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
root=$work/root disk=$work/disk

# What is never read in a guest that lives for minutes is not unpacked at all.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
printf 'path-exclude=/usr/share/%s/*\n' doc man info locale lintian bug >"$root/etc/dpkg/dpkg.cfg.d/lean"
echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/lean"
debootstrap --variant=minbase "$release" "$root"

# No service starts in a chroot.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
chroot "$root" apt-get update -q
# systemd-resolved takes over resolv.conf while others are still being configured.
chroot "$root" apt-get install -y -q --no-install-recommends $packages || {
	cp --dereference --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
	chroot "$root" apt-get -f install -y -q
}
chroot "$root" apt-get clean
umount "$root/proc"
rm -rf "$root/usr/sbin/policy-rc.d" "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin

# Nothing but the seed says who the guest is, and what it runs.
: >"$root/etc/machine-id"
echo localhost >"$root/etc/hostname"
echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
echo 'datasource_list: [NoCloud, None]' >"$root/etc/cloud/cloud.cfg.d/90-seed.cfg"
chroot "$root" systemctl disable tinyproxy
chroot "$root" systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer

# extlinux knows neither of the two features.
truncate -s 2G "$disk"
mkfs.ext4 -q -F -m 0 -O '^64bit,^metadata_csum' -d "$root" "$disk"
mkdir "$work/mnt"
mount -o loop "$disk" "$work/mnt"
mkdir "$work/mnt/boot/extlinux"
cat >"$work/mnt/boot/extlinux/extlinux.conf" <<-END
	DEFAULT linux
	PROMPT 0
	LABEL linux
	  LINUX /vmlinuz
	  INITRD /initrd.img
	  APPEND root=/dev/vda rw console=ttyS0 quiet mitigations=off
END
extlinux --install "$work/mnt/boot/extlinux"
umount "$work/mnt"
qemu-img convert -c -O qcow2 "$disk" "$out"
