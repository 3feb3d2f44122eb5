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
	Children     time.Duration // processor time of its children that have ended
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
	const majflt, utime, stime, cutime, cstime = 9, 11, 12, 13, 14
	if len(words) <= cstime {
		return u, fmt.Errorf("/proc/PID/stat has %d fields after the name", len(words))
	}
	u.MajorFaults = number("majflt", words[majflt])
	spent := func(what string, n int) time.Duration {
		return time.Duration(number(what, words[n])) * time.Second / ticks
	}
	u.User, u.Kernel = spent("utime", utime), spent("stime", stime)
	u.Children = spent("cutime", cutime) + spent("cstime", cstime)
	return u, errors.Join(faults...)
}

// Share reads what a process takes where it counts for its part of what it shares with
// others, in bytes. Processes that share much, such as those of PostgreSQL, are summed by it.
func Share(pid int) (int64, error) {
	rollup, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	return ParseShare(string(rollup))
}

// ParseShare reads the text of /proc/PID/smaps_rollup.
func ParseShare(rollup string) (int64, error) {
	kibibytes, err := strconv.ParseInt(field(rollup, "Pss:"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the share, Pss: %w", err)
	}
	return kibibytes << 10, nil
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

// Family is the processor time of a process and of all that it started: those that have
// ended count once somebody has waited for them.
func Family(pid int) (all time.Duration, err error) {
	stats := map[int]string{}
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range found {
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if text, err := os.ReadFile(path); err == nil { //nolint:gosec // of /proc; it may have ended since
			stats[id] = string(text)
		}
	}
	if stats[pid] == "" {
		return 0, fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	}
	return family(stats, pid)
}

// family adds up a process and its children in the texts of /proc/PID/stat.
func family(stats map[int]string, pid int) (time.Duration, error) {
	const ppid, utime, cstime = 1, 11, 14 // of the fields after the name
	words := strings.Fields(stats[pid][strings.LastIndexByte(stats[pid], ')')+1:])
	if len(words) <= cstime {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(words))
	}
	var all time.Duration
	for _, word := range words[utime : cstime+1] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		all += time.Duration(n) * time.Second / ticks
	}
	for child, text := range stats {
		if of := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]); len(of) <= ppid || of[ppid] != strconv.Itoa(pid) {
			continue
		}
		more, err := family(stats, child)
		if err != nil {
			return 0, err
		}
		all += more
	}
	return all, nil
}
