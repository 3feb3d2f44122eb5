// Package page looks at the page in a real Chromium, by `make test-tools`: a fleet that is
// only told, in every state that one can be in, and its pictures.
package page
