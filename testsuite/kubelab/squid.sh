# The file system of Debian's squid, as a tar. Called with the release, the mirror (empty:
# debootstrap's own) and an empty folder to work in; in a mount namespace of its own, so
# that no mount outlives it.
set -eu
release=$1 mirror=$2 work=$3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
umask 022
root=$work/root

# What no proxy reads is not unpacked at all.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
printf 'path-exclude=/usr/share/%s/*\n' doc man info locale lintian bug >"$root/etc/dpkg/dpkg.cfg.d/lean"
echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/lean"
debootstrap --force-check-gpg --variant=minbase --include=squid "$release" "$root" ${mirror:+"$mirror"}

tar -C "$root" --numeric-owner --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
	--exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -cf "$work/layer.tar" .
