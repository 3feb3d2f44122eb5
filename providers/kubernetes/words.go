package kubernetes

import (
	"cmp"
	"maps"
	"slices"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func added(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

func orElse(value, otherwise string) string { return cmp.Or(value, otherwise) }
