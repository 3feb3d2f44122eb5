// Command cluster lets 200 proxies live on a Temporal cluster as production has it: two
// servers on one PostgreSQL, two workers and two APIs. One of each is killed while the
// proxies change, the workers are rolled to newer builds, and in the end the database of
// Temporal is lost. The backend is the Compute Engine of testsuite/gcefake, which counts
// what was made twice. It is Linux's, and may import every room. Start reading at
// world.live in life.go, then judge.go. `make e2e-cluster` runs it; its last line is the
// outcome. `cluster COMMAND` has the servers and the database only, and runs a command
// beside them.
package main
