// Package namespaces holds the tests that need two addresses which are really apart:
// stock proxies, a client and a stranger, each in a network namespace of its own.
// `make test-netns` runs them, as root on Linux; what is missing makes them fail. Start
// reading at open_test.go; world_test.go is the network.
package namespaces
