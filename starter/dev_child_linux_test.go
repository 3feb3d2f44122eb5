package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAChildDoesNotOutliveACrash(t *testing.T) {
	t.Parallel()
	parent, _ := startPlayer(t, playParent)
	text := logged(t, parent.log, "up\n")
	fields := strings.Fields(text) // "child <pid>", then "up"
	pid, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	logged(t, parent.log+".child", "up\n")
	require.NoError(t, parent.cmd.Process.Kill())
	require.Eventually(t, func() bool { return !runs(pid) }, soon, tick)
}

// runs reports whether a process is there and no zombie, which whoever inherits it
// may leave for a while.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
