package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingFoundIsToldFromNobodyLooked(t *testing.T) {
	t.Parallel()
	const notChecked = "NOT CHECKED: govulncheck failed"
	for name, tt := range map[string]struct {
		code  int
		words string
		exit  int
		want  string
	}{
		"nothing was found": {0, "No vulnerabilities found.\n", exitNothing, "nothing is known"},
		"something was":     {3, "Vulnerability #1: GO-2026-0001\n", exitFound, "vulnerabilities were found"},
		"no way to the database": {
			1, "govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/index/modules.json.gz\": dial tcp: " +
				"lookup vuln.go.dev on 192.0.2.1:53: no such host\n", exitNoLook, "NOT CHECKED: the database",
		},
		"code that does not compile": {1, "govulncheck: loading packages: errors\n", exitNoLook, notChecked},
		"a tool that is not there":   {1, "fork/exec bin/govulncheck: no such file\n", exitNoLook, notChecked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, verdict := judge(tt.code, tt.words)
			require.Equal(t, tt.exit, exit)
			require.Contains(t, verdict, "vulncheck: ")
			require.Contains(t, verdict, tt.want)
		})
	}
}
