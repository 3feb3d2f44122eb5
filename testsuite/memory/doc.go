// Command memory runs the worker as its image does, and measures what it takes: the
// static binary, under a memory control group of 128 MiB, as a user without rights, on
// a root that is read-only, with 2,000 proxies on the Compute Engine of
// testsuite/gcefake, which fails now and then. It needs Linux and root, and may import
// every room. Start reading at play in main.go; box.go is the container, and life.go
// what happens in it. `make e2e-memory` runs it; its last line is the outcome.
package main
