package kvmlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// needs says which of Debian's packages has a program of the lab.
func needs() map[string]string {
	return map[string]string{
		"libvirtd": "libvirt-daemon-system", "virtlogd": "libvirt-daemon-system", "virsh": "libvirt-clients",
		"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils", "dnsmasq": "dnsmasq-base",
		"iptables": "iptables", "dmidecode": "dmidecode", "sshd": "openssh-server", "ssh": "openssh-client",
		"ssh-keygen": "openssh-client", "nc": "netcat-openbsd", "ip": "iproute2", "pkill": "procps",
		"nsenter": "util-linux", "unshare": "util-linux",
		"debootstrap": "debootstrap", "extlinux": "extlinux", "mkfs.ext4": "e2fsprogs",
	}
}

// files are what no program on PATH stands for.
func files() map[string]string {
	const drivers = "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/"
	return map[string]string{
		"/boot/ipxe.lkrn": "ipxe", drivers + "libvirt_driver_qemu.so": "libvirt-daemon-driver-qemu",
	}
}

// CheckNeeds is nil where the lab can run, or says what to do.
func CheckNeeds() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("the lab of KVM hosts is for linux/amd64, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	var faults []error
	if os.Getuid() != 0 {
		faults = append(faults, errors.New("namespaces, mounts and libvirtd need root"))
	}
	var packages []string
	for program, name := range needs() {
		if _, err := find(program); err != nil {
			packages = append(packages, name)
		}
	}
	for file, name := range files() {
		if _, err := os.Stat(file); err != nil {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	if packages = slices.Compact(packages); len(packages) > 0 {
		faults = append(faults, errors.New("packages are missing; on Debian:\n  apt-get install -y --no-install-recommends "+
			strings.Join(packages, " ")))
	}
	return errors.Join(faults...)
}

// find looks for a program also where only root's PATH leads.
func find(program string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if at, err := exec.LookPath(dir + program); err == nil {
			return at, nil
		}
	}
	return "", exec.ErrNotFound
}
