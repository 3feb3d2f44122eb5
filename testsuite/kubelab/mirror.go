//go:build linux

package kubelab

import (
	"context"
	"os/exec"
	"strings"
)

// mirror is where Debian's packages come from on this machine: apt was told, and
// debootstrap does not ask it. Empty fields leave the choice to debootstrap.
type mirror struct {
	url   string
	proxy []string // of the environment
}

func findMirror(ctx context.Context) (m mirror) {
	if targets, err := exec.CommandContext(ctx, "apt-get", "indextargets").Output(); err == nil {
		m.url = mirrorOf(string(targets), squidRelease)
	}
	for key, name := range map[string]string{
		"Acquire::http::Proxy": "http_proxy", "Acquire::https::Proxy": "https_proxy",
	} {
		text, err := exec.CommandContext(ctx, "apt-config", "shell", "p", key).Output() //nolint:gosec // of the table
		if url := assigned(string(text)); err == nil && strings.Contains(url, "://") {
			m.proxy = append(m.proxy, name+"="+url)
		}
	}
	return m
}

// mirrorOf reads what `apt-get indextargets` prints. A mirror of another release of
// Debian has this one, too.
func mirrorOf(targets, release string) (url string) {
	for stanza := range strings.SplitSeq(targets, "\n\n") {
		has := fields(stanza)
		site := has["Site"]
		if has["Label"] != "Debian" || has["Component"] != "main" || !readable(site) {
			continue
		}
		if has["Codename"] == release {
			return site
		}
		if url == "" {
			url = site
		}
	}
	return url
}

func fields(stanza string) map[string]string {
	has := map[string]string{}
	for line := range strings.Lines(stanza) {
		if key, value, found := strings.Cut(line, ": "); found {
			has[key] = strings.TrimSpace(value)
		}
	}
	return has
}

// readable reports whether debootstrap knows the scheme of a mirror.
func readable(url string) bool {
	for _, scheme := range []string{"http://", "https://", "file:/"} {
		if strings.HasPrefix(url, scheme) {
			return true
		}
	}
	return false
}

// assigned is the value in a shell's assignment, p='value'.
func assigned(text string) string {
	_, value, _ := strings.Cut(strings.TrimSpace(text), "=")
	return strings.Trim(value, "'")
}
