# A guest that gets an address and then idles: iPXE on a disk of its own, whose command
# line asks for a lease. It runs a second after its start, in 32 MiB, without a seed.
# Called with the kernel, an empty folder to work in, and the file to make; in a mount
# namespace of its own, so that no mount outlives it.
set -euo pipefail
kernel=$1 work=$2 out=$3
truncate -s 2M "$work/disk"
mkfs.ext4 -q -F -m 0 -O '^64bit,^metadata_csum,^has_journal' "$work/disk"
mkdir "$work/mnt"
mount -o loop "$work/disk" "$work/mnt"
cp "$kernel" "$work/mnt/ipxe"
cat >"$work/mnt/extlinux.conf" <<-'END'
	DEFAULT ipxe
	PROMPT 0
	LABEL ipxe
	  LINUX /ipxe
	  APPEND dhcp || dhcp || dhcp && shell
END
extlinux --install "$work/mnt"
umount "$work/mnt"
qemu-img convert -O qcow2 "$work/disk" "$out"
