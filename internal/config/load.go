package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Sources are the places that settings come from, the weakest first.
type Sources struct {
	File    string   // a YAML file; empty: none
	Environ []string // KEY=value, as os.Environ returns it
	Flags   *pflag.FlagSet
}

// AddFlags defines one flag for every setting.
func AddFlags(flags *pflag.FlagSet) {
	for _, s := range settings() {
		usage := s.help + " (" + s.env() + ")"
		if s.key == "roles" {
			flags.StringSlice(s.flag, strings.Split(s.def, ","), usage)
			continue
		}
		flags.String(s.flag, s.def, usage)
	}
}

// Load reads the settings from a file (none when empty), the process's variables
// and flags that AddFlags defined. Its error tells of everything that is wrong,
// each with key, value and where the value comes from.
func Load(flags *pflag.FlagSet, file string) (Config, error) {
	return Sources{File: file, Environ: os.Environ(), Flags: flags}.Load()
}

// Load is the function Load with every source in the caller's hand.
func (s Sources) Load() (Config, error) {
	l := newLayers()
	if err := l.file(s.File); err != nil {
		return Config{}, err
	}
	warnings := l.environ(s.Environ)
	l.flags(s.Flags)
	c, err := l.config()
	c.Warnings = warnings
	return c, err
}

// layers holds the values with the strongest on top, and where each comes from.
type layers struct {
	values *viper.Viper
	from   map[string]string // key → source, for errors
}

func newLayers() *layers {
	l := &layers{values: viper.New(), from: map[string]string{}}
	for _, s := range settings() {
		l.values.SetDefault(s.key, s.def)
	}
	return l
}

// put lays a value over what is there.
func (l *layers) put(key, value, from string) {
	l.values.Set(key, value)
	l.from[key] = from
}

// environ lays the variables over the file, and returns what to warn about.
func (l *layers) environ(environ []string) (warnings []string) {
	byEnv := map[string]setting{}
	for _, s := range settings() {
		byEnv[s.env()] = s
	}
	for _, line := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(line, "=")
		s, known := byEnv[name]
		switch {
		case !strings.HasPrefix(name, EnvPrefix), value == "", isOther(name):
		case !known:
			warnings = append(warnings, name+" is no setting and has no effect")
		case isServiceLink(value):
			warnings = append(warnings, name+" looks like a link to a Kubernetes Service and has no effect")
		default:
			l.put(s.key, value, name)
		}
	}
	return warnings
}

// isOther reports whether a variable is ours, though no setting of a worker.
func isOther(name string) bool {
	return slices.Contains(otherVariables(), name) || strings.HasPrefix(name, EnvSecretPrefix)
}

// isServiceLink tells Kubernetes' <SERVICE>_PORT=tcp://10.0.0.1:8080 from a port: a
// Service called egressfleet-api puts one in the place of EGRESSFLEET_API_PORT.
func isServiceLink(value string) bool {
	return strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://")
}

// flags lays what was given on the command line over everything.
func (l *layers) flags(flags *pflag.FlagSet) {
	if flags == nil {
		return
	}
	for _, s := range settings() {
		f := flags.Lookup(s.flag)
		if f == nil || !f.Changed {
			continue
		}
		text := f.Value.String()
		if many, ok := f.Value.(pflag.SliceValue); ok {
			text = strings.Join(many.GetSlice(), ",")
		}
		l.put(s.key, text, "--"+s.flag)
	}
}

// config turns text into fields.
func (l *layers) config() (Config, error) {
	var c Config
	var faults []error
	for _, s := range settings() {
		if err := s.set(&c, l.values.GetString(s.key)); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w (%s)", s.key, err, l.source(s)))
		}
	}
	if c.Plays(RoleWorker) && c.ProvidersFile == "" {
		faults = append(faults, errors.New("providersFile: is required for the role worker "+
			"(--providers-file, "+EnvPrefix+"PROVIDERS_FILE, or the configuration file)"))
	}
	if c.Plays(RoleAPI) {
		faults = append(faults, c.API.validate())
	}
	return c, errors.Join(append(faults, c.Codec.validate(), c.Deployment.validate())...)
}

// source says where a value comes from, or where it could come from.
func (l *layers) source(s setting) string {
	if from, ok := l.from[s.key]; ok {
		return "from " + from
	}
	return fmt.Sprintf("--%s, %s, or the configuration file", s.flag, s.env())
}
