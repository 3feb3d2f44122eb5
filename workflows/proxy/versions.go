package proxy

import "go.temporal.io/sdk/workflow"

// changeRound is the one change ID of this workflow; its versions are dated. A run
// keeps the version it started with; continue-as-new moves on to the newest.
const changeRound = "round"

const (
	versionFirst     = 1 // 2026-11-29: observe, decide, execute, wait
	versionRelease   = 2 // 2026-11-30: a hint that the provider changed releases a latch
	versionDeadlines = 3 // 2026-11-30: a watch ends when a deadline passes, which is told once
	versionOpenProxy = 4 // 2026-11-30: the signal openProxy is taken
	versionShown     = 5 // 2026-11-30: what a message changed is published also while the backend is asked
	versionPrepare   = 6 // 2026-11-30: a create that is not prepared is followed by a Prepare
	versionChanged   = 7 // 2026-11-30: each run says when it published last
	versionLetGo     = 8 // 2026-11-30: a delete does not cancel the watch of a running instance
	versionNewest    = versionLetGo
)

// pinVersion is called once, at the start of a run, never in a loop.
func pinVersion(ctx workflow.Context) workflow.Version {
	return workflow.GetVersion(ctx, changeRound, versionFirst, versionNewest)
}
