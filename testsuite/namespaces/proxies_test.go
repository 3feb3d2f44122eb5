//go:build tools && linux

package namespaces

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/testsuite/output"
)

// software is a stock proxy: Debian's binary and Debian's file, with clients added.
type software struct {
	port int
	args func(file, service string) []string
	path string
	// rules are for the addresses of clients, or for everybody.
	rules func(t *testing.T, clients string) string
}

const everybody = "everybody"

func stock() map[string]software {
	return map[string]software{
		"squid": {
			port: 3128, path: "/usr/sbin/squid", rules: squidRules,
			args: func(file, service string) []string { return []string{"-N", "-d", "1", "-n", service, "-f", file} },
		},
		"tinyproxy": {
			port: 8888, path: "/usr/bin/tinyproxy", rules: tinyproxyRules,
			args: func(file, _ string) []string { return []string{"-d", "-c", file} },
		},
	}
}

// squidRules let clients in before the stock rule that denies everybody else. Nothing is
// on disk, and no name server is asked.
func squidRules(t *testing.T, clients string) string {
	t.Helper()
	text := without(t, "/etc/squid/squid.conf", "http_port", "coredump_dir")
	const last = "\nhttp_access deny all\n"
	require.Contains(t, text, last, "the stock rules")
	if clients == everybody {
		clients = "all"
	} else {
		text = "acl clients src " + clients + "\n" + text
		clients = "clients"
	}
	return strings.Replace(text, last, "\nhttp_access allow "+clients+last, 1) + `
http_port ` + net.JoinHostPort(proxyIP, strconv.Itoa(stock()["squid"].port)) + `
dns_nameservers 127.0.0.1
pid_filename none
cache deny all
cache_mem 8 MB
access_log none
cache_log /dev/null
netdb_filename none
pinger_enable off
coredump_dir /
shutdown_lifetime 0 seconds
visible_hostname proxy.example
`
}

// tinyproxyRules let clients in the place of the machine's own address; without any rule
// everybody is a client.
func tinyproxyRules(t *testing.T, clients string) string {
	t.Helper()
	text := without(t, "/etc/tinyproxy/tinyproxy.conf", "Port", "LogFile", "PidFile", "User", "Group", "Allow")
	if clients != everybody {
		text += "\nAllow " + clients + "\n"
	}
	return text + "\nListen " + proxyIP + "\nPort " + strconv.Itoa(stock()["tinyproxy"].port) + "\n"
}

// without is a stock file without some settings.
func without(t *testing.T, path string, settings ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err, "on Debian: apt-get install -y --no-install-recommends squid tinyproxy")
	return regexp.MustCompile(`(?m)^(`+strings.Join(settings, "|")+`) .*$`).ReplaceAllString(string(text), "")
}

// serve runs a stock proxy in the namespace of the proxies, until stop is called or the
// test ends, and waits until it listens.
func (w *world) serve(name, clients string) (stop func()) {
	w.t.Helper()
	s := stock()[name]
	dir := w.t.TempDir()
	require.NoError(w.t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(w.t, os.Chmod(dir, 0o755)) // for the users of the proxies
	file := filepath.Join(dir, name+".conf")
	require.NoError(w.t, os.WriteFile(file, []byte(s.rules(w.t, clients)), 0o644))
	service := regexp.MustCompile(`\W`).ReplaceAllString(string(w.proxies), "") // shared memory has its name
	said := new(output.Log)
	cmd := exec.Command("ip", append([]string{"netns", "exec", string(w.proxies), s.path}, s.args(file, service)...)...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its helpers
	require.NoError(w.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(soon):
			w.t.Errorf("%s does not end", name)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	w.t.Cleanup(stop)
	address := w.proxy(name).Address
	require.Eventually(w.t, func() bool {
		conn, err := w.client.dial(w.t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, soon, tick, "%s does not listen on %s: %s", name, address, said)
	return stop
}

func (w *world) proxy(name string) probe.Proxy {
	return probe.Proxy{Address: net.JoinHostPort(proxyIP, strconv.Itoa(stock()[name].port))}
}
