package telemetry

import (
	"runtime/debug"
	"strings"
)

// shortRevision is how much of a commit's name tells it from others.
const shortRevision = 12

// stamped is set by the linker of a release (tools/release) and of the image.
var stamped string

// Version returns the version of this binary: what its release was stamped with, the
// module's where it was installed by version, else the commit, with "-dirty" when it was built from changed files.
func Version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.Replace(v, "+dirty", "-dirty", 1)
	}
	revision := settings["vcs.revision"]
	switch {
	case revision == "":
		return "devel"
	case len(revision) > shortRevision:
		revision = revision[:shortRevision]
	}
	if settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return revision
}
