// Package usage is what a process takes, as the kernel of Linux counts it in /proc, for
// suites that measure. It imports nothing of ours. Start reading at Of.
package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many of the kernel's clock ticks a second has, on every Linux that Go runs on.
const ticks = 100

const mebibyte = 1 << 20

// Usage is what a process takes; sizes in bytes.
type Usage struct {
	RSS, Most    int64 // resident now, and the most that was
	Own, Files   int64 // of RSS: its own memory, and pages of files such as its binary
	MajorFaults  int64 // pages that were read from the disk: those of a binary that does not fit are, again and again
	User, Kernel time.Duration
}

// CPU is the processor time, its own and the kernel's for it.
func (u Usage) CPU() time.Duration { return u.User + u.Kernel }

func (u Usage) String() string {
	return fmt.Sprintf("rss=%s rss_max=%s own=%s files=%s major_faults=%d user=%s kernel=%s",
		mib(u.RSS), mib(u.Most), mib(u.Own), mib(u.Files), u.MajorFaults, u.User, u.Kernel)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1fMiB", float64(bytes)/mebibyte) }

// Of reads the usage of a process. One that has ended has none.
func Of(pid int) (Usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status")) //nolint:gosec // of /proc
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat")) //nolint:gosec // of /proc
	if err != nil {
		return Usage{}, err
	}
	return Parse(string(status), string(stat))
}

// Parse reads the texts of /proc/PID/status and /proc/PID/stat.
func Parse(status, stat string) (u Usage, err error) {
	var faults []error
	number := func(what, text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
		return n
	}
	for name, to := range map[string]*int64{
		"VmRSS:": &u.RSS, "VmHWM:": &u.Most, "RssAnon:": &u.Own, "RssFile:": &u.Files,
	} {
		*to = number(name, field(status, name)) << 10
	}
	// The name of the program is in brackets, and may have blanks.
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const majflt, utime, stime = 9, 11, 12
	if len(words) <= stime {
		return u, fmt.Errorf("/proc/PID/stat has %d fields after the name", len(words))
	}
	u.MajorFaults = number("majflt", words[majflt])
	u.User = time.Duration(number("utime", words[utime])) * time.Second / ticks
	u.Kernel = time.Duration(number("stime", words[stime])) * time.Second / ticks
	return u, errors.Join(faults...)
}

// field is the first word after a name at the beginning of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return words[1]
		}
	}
	return ""
}
