//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "memory: control groups are Linux's")
	os.Exit(1)
}
