package kubernetes

import (
	"fmt"
	"net/netip"
	"strings"
)

// The paths within the container.
const (
	configDir  = "/etc/egressfleet"
	configFile = "squid.conf"
)

// squidConf is the configuration of the proxy. Its rules end with a refusal, so that
// what none of them speaks of is not let through. The PID file is left out: one on a
// volume outlives the container, and the next squid would take it for a running one.
func squidConf(port int, r ranges) string {
	var b strings.Builder
	fmt.Fprintf(&b, "http_port %d\n", port)
	acl(&b, "clients src", r.clients)
	acl(&b, "denied_targets dst", r.denied)
	b.WriteString(`acl tunnel method CONNECT
acl tunnel_ports port 443 80
acl plain_ports port 80 443 1025-65535
http_access deny !clients
http_access deny tunnel !tunnel_ports
http_access deny !tunnel !plain_ports
http_access deny manager
http_access deny denied_targets
http_access allow clients
http_access deny all
visible_hostname egressfleet
forwarded_for delete
via off
cache deny all
cache_mem 0 MB
memory_cache_shared off
memory_pools off
access_log none
cache_log /dev/null
cache_store_log none
netdb_filename none
pinger_enable off
pid_filename none
logfile_rotate 0
coredump_dir /tmp
max_filedescriptors 4096
shutdown_lifetime 3 seconds
`)
	return b.String()
}

// acl has one line for each range, so that the text of many stays readable.
func acl(b *strings.Builder, head string, list []netip.Prefix) {
	for _, prefix := range list {
		fmt.Fprintf(b, "acl %s %s\n", head, prefix)
	}
}
