package telemetry

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	built := func(settings ...debug.BuildSetting) debug.BuildInfo {
		return debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings}
	}
	tests := map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"installed by version":           {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		"built from changed files":       {debug.BuildInfo{Main: debug.Module{Version: "v0.0.1+dirty"}}, "v0.0.1-dirty"},
		"a commit":                       {built(commit), "0123456789ab"},
		"a commit with changes":          {built(commit, dirty), "0123456789ab-dirty"},
		"a build that knows no commit":   {built(), "devel"},
		"a test, which knows no version": {debug.BuildInfo{}, "devel"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, versionOf(&tt.info))
		})
	}
}
