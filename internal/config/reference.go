package config

import (
	"fmt"
	"io"
)

// WriteReference writes every key with its variable, flag, default and meaning as a
// Markdown table; the documentation holds this text.
func WriteReference(w io.Writer) error {
	if _, err := fmt.Fprint(w, "| key | variable | flag | default | is |\n|---|---|---|---|---|\n"); err != nil {
		return err
	}
	for _, s := range settings() {
		def := "–"
		if s.def != "" {
			def = "`" + s.def + "`"
		}
		if _, err := fmt.Fprintf(w, "| `%s` | `%s` | `--%s` | %s | %s |\n", s.key, s.env(), s.flag, def, s.help); err != nil {
			return err
		}
	}
	return nil
}
