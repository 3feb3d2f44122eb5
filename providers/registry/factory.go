package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// Env is what every provider is told besides its own configuration.
type Env struct {
	Name         string // the configured name, in every error
	Installation string // the mark on every instance it makes
}

// Factory builds the providers of one type.
type Factory interface {
	// Type is the word for the type in a providers file.
	Type() string
	// Build decodes the block of an entry and constructs the provider. An empty block
	// is the zero configuration. It dials nothing.
	Build(ctx context.Context, env Env, block json.RawMessage) (providers.Provider, error)
}

type factory[C any, P providers.Provider] struct {
	typ       string
	construct func(context.Context, Env, C) (P, error)
}

// NewFactory states a type once: its word and its constructor, whose configuration
// is decoded strictly. An UnmarshalJSON of C must not quote a secret in its error.
func NewFactory[C any, P providers.Provider](
	typ string, construct func(ctx context.Context, env Env, cfg C) (P, error),
) Factory {
	return factory[C, P]{typ: typ, construct: construct}
}

func (f factory[C, P]) Type() string { return f.typ }

func (f factory[C, P]) Build(
	ctx context.Context, env Env, block json.RawMessage,
) (built providers.Provider, err error) {
	cfg, err := decode[C](block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.typ, err)
	}
	defer func() { // the other providers go on
		if fault := recover(); fault != nil {
			providers.Logger(ctx).Error("a provider's constructor panicked",
				slog.String("type", f.typ), slog.String("stack", string(debug.Stack())))
			built, err = nil, fmt.Errorf("its constructor panicked with a %T; the log has the stack", fault)
		}
	}()
	p, err := f.construct(ctx, env, cfg)
	if err != nil {
		return nil, err // not p: it may be a nil pointer in an interface
	}
	return p, nil
}

// decode reads a block; nothing is the zero configuration, as null is.
func decode[C any](block json.RawMessage) (C, error) {
	var cfg C
	if len(block) == 0 {
		return cfg, nil
	}
	if err := checkKeys(reflect.TypeFor[C](), block, ""); err != nil {
		return cfg, err
	}
	decoder := json.NewDecoder(bytes.NewReader(block))
	decoder.DisallowUnknownFields()
	return cfg, explain(decoder.Decode(&cfg))
}

// explain says which key of a block is wrong, in the words of the file. It never
// quotes a value: any of them may be a secret.
func explain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ") // "number 1.5" holds the value
		if wrong.Field == "" {
			return fmt.Errorf("is %s, want a mapping", inYAML(kind))
		}
		return fmt.Errorf("%s: is %s, want %s", wrong.Field, inYAML(kind), wanted(wrong.Type))
	}
	return err
}

// inYAML is the word of the file for a kind of JSON value.
func inYAML(kind string) string {
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	default:
		return "a " + kind
	}
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return t.String()
	}
}
