//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cluster: the namespaces that it runs in are Linux's")
	os.Exit(1)
}
