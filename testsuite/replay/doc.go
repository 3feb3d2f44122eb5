// Package replay replays every recorded history against the code of this tree. A
// history that no longer replays would wedge the running workflows of its release.
package replay
