package kvmlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prepare makes the files that the host lays over the machine's.
func (h *Host) prepare(keys Keys) error {
	for _, dir := range []string{"run/sshd", "log", "cache/qemu", "authorized"} {
		if err := os.MkdirAll(h.file(dir), 0o755); err != nil { //nolint:gosec // QEMU has a user of its own
			return err
		}
	}
	return errors.Join(
		run("cp", "-a", "/etc/libvirt", h.file("etc")), run("cp", "-a", "/var/lib/libvirt", h.file("lib")),
		h.libvirt(), h.accounts(), h.sshd(keys))
}

// libvirt configures libvirtd, its network and its pool.
func (h *Host) libvirt() error {
	for _, dir := range []string{"qemu/networks", "storage"} { // a copy starts nothing, a link does
		link := h.file("etc/" + dir + "/autostart/default.xml")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil { //nolint:gosec // as Debian has them
			return err
		}
		if err := os.Symlink("/etc/libvirt/"+dir+"/default.xml", link); err != nil {
			return err
		}
	}
	return h.write(map[string]string{
		// The group of the socket is the only permission.
		"etc/libvirtd.conf": fmt.Sprintf("unix_sock_group = \"libvirt\"\nunix_sock_rw_perms = \"0770\"\n"+
			"auth_unix_rw = \"none\"\nhost_uuid = \"0e1b7c1e-7a60-4f2b-9d10-00000000000%d\"\n", h.Number),
		// All hosts would share the groups of the machine.
		"etc/qemu.conf":                 "cgroup_controllers = []\nsecurity_driver = \"none\"\nnamespaces = []\n",
		"etc/qemu/networks/default.xml": h.networkXML(),
		"etc/storage/default.xml":       poolXML,
	})
}

// networkXML routes the guests' network, instead of hiding it behind the host's address,
// so that a prober reaches a guest. The option tells iPXE not to wait for a boot server.
func (h *Host) networkXML() string {
	return fmt.Sprintf(`<network xmlns:dnsmasq='http://libvirt.org/schemas/network/dnsmasq/1.0'>
  <name>%s</name>
  <bridge name='virbr0' stp='off' delay='0'/>
  <forward mode='route'/>
  <ip address='%s' netmask='255.255.255.0'>
    <dhcp><range start='%s' end='%s'/></dhcp>
  </ip>
  <dnsmasq:options><dnsmasq:option value='dhcp-option-force=encap:175,176,1b'/></dnsmasq:options>
</network>
`, Network, guests(h.Number, 1), guests(h.Number, 2), guests(h.Number, 254)) //nolint:mnd // a whole /24
}

const poolXML = `<pool type='dir'>
  <name>` + Pool + `</name>
  <target><path>` + PoolPath + `</path></target>
</pool>
`

// accounts adds the user whose only right is the group of libvirt's socket.
func (h *Host) accounts() error {
	const id = "64990"
	more := map[string]string{
		"passwd": BridgeUser + ":x:" + id + ":" + id + "::/nonexistent:/bin/sh\n",
		"shadow": BridgeUser + ":*:20000::::::\n", // no password, and not locked
		"hosts":  "127.0.0.1 localhost " + h.Name + "\n",
	}
	lines := map[string]string{"resolv.conf": ""} // no name server is in reach, and none is waited for
	for name, line := range more {
		text, err := os.ReadFile(filepath.Join("/etc", name)) //nolint:gosec // from the table above
		if err != nil {
			return err
		}
		lines[name] = string(text) + line
	}
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return err
	}
	lines["group"], err = joinGroup(string(groups)+BridgeUser+":x:"+id+":\n", "libvirt", BridgeUser)
	return errors.Join(err, h.write(lines))
}

// joinGroup adds a member to a group of a file in the format of /etc/group.
func joinGroup(groups, name, member string) (string, error) {
	var out strings.Builder
	found := false
	for line := range strings.Lines(groups) {
		if strings.HasPrefix(line, name+":") {
			found = true
			line = strings.TrimSuffix(line, "\n")
			if !strings.HasSuffix(line, ":") {
				line += ","
			}
			line += member + "\n"
		}
		out.WriteString(line)
	}
	if !found {
		return "", fmt.Errorf("there is no group %q: is libvirt-daemon-system installed?", name)
	}
	return out.String(), nil
}

func (h *Host) write(files map[string]string) error {
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(h.file(name)), 0o755); err != nil { //nolint:gosec // as Debian has them
			return err
		}
		if err := os.WriteFile(h.file(name), []byte(text), 0o644); err != nil { //nolint:gosec // as Debian has them
			return err
		}
	}
	return nil
}
