package v1

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// FieldError says which field cannot be right, what it holds and why. Its value is
// never a secret.
type FieldError struct {
	Field   string
	Value   string
	Problem string
}

// Error names the field and the value.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %q %s", e.Field, e.Value, e.Problem)
}

const (
	maxPlacement = 253
	maxPort      = 65535
	shownValue   = 80 // of a value that is quoted in an error
	// reservedLabels are the marks on an instance, which a label may not stand in for.
	reservedLabels = "proxy-operator-"
)

var (
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dnsDomain  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	labelPart  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	secretPart = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}$`)
)

// IsName reports whether s is a DNS-1123 label of at most 63 characters, as every
// namespace, name, provider and installation is.
func IsName(s string) bool { return dnsLabel.MatchString(s) }

// NamesOf takes <namespace>/<name> apart, as marks and workflow IDs name a proxy. It is
// not ok where these are not two names.
func NamesOf(owner string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(owner, "/")
	if !ok || !IsName(namespace) || !IsName(name) {
		return "", "", false
	}
	return namespace, name, true
}

// Validate returns nil or a *FieldError about the names or the labels.
func (m Metadata) Validate() error {
	if err := name("metadata.namespace", m.Namespace); err != nil {
		return err
	}
	if err := name("metadata.name", m.Name); err != nil {
		return err
	}
	return ValidateLabels(m.Labels)
}

// Validate returns nil or a *FieldError.
func (s ProxySpec) Validate() error {
	if err := name("spec.provider", s.Provider); err != nil {
		return err
	}
	if s.Port == 0 {
		return &FieldError{"spec.port", "0", "is required: 1 to 65535"}
	}
	if s.Port < 1 || s.Port > maxPort {
		return &FieldError{"spec.port", fmt.Sprint(s.Port), "is not within 1 to 65535"}
	}
	for _, check := range []func() error{
		s.Placement.validate, s.CloudInit.validate, s.HealthCheck.validate, s.Deadlines.validate,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ValidateLabels returns nil or a *FieldError: labels are as Kubernetes has them,
// and none has the prefix of the marks.
func ValidateLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		prefix, part, prefixed := strings.Cut(key, "/")
		if !prefixed {
			prefix, part = "", key
		}
		switch {
		case strings.HasPrefix(key, reservedLabels), strings.HasPrefix(part, reservedLabels):
			return &FieldError{"metadata.labels", show(key), "is kept for the marks on an instance"}
		case !labelPart.MatchString(part), prefixed && (len(prefix) > maxPlacement || !dnsDomain.MatchString(prefix)):
			return &FieldError{"metadata.labels", show(key), "is not a label key"}
		}
		if v := labels[key]; v != "" && !labelPart.MatchString(v) {
			return &FieldError{"metadata.labels." + key, show(v), "is not a label value"}
		}
	}
	return nil
}

func name(field, value string) error {
	const form = "a DNS label: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
	switch {
	case IsName(value):
		return nil
	case value == "":
		return &FieldError{field, "", "is required: " + form}
	default:
		return &FieldError{field, show(value), "is not " + form}
	}
}

func (p Placement) validate() error {
	for _, f := range []struct{ field, value string }{
		{"region", p.Region}, {"zone", p.Zone}, {"machineType", p.MachineType}, {"image", p.Image},
	} {
		if len(f.value) > maxPlacement {
			return &FieldError{
				"spec.placement." + f.field, show(f.value),
				fmt.Sprintf("has %d characters, more than %d", len(f.value), maxPlacement),
			}
		}
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			return &FieldError{"spec.placement." + f.field, show(f.value), "has a control character"}
		}
	}
	return nil
}

func (c CloudInit) validate() error {
	set := 0
	for _, is := range []bool{c.Inline != "", c.InlineBase64 != "", c.SecretRef != nil} {
		if is {
			set++
		}
	}
	if set > 1 {
		return &FieldError{
			"spec.cloudInit", fmt.Sprintf("%d fields", set),
			"has more than one of inline, inlineBase64 and secretRef",
		}
	}
	if _, err := base64.StdEncoding.DecodeString(c.InlineBase64); err != nil {
		return &FieldError{
			"spec.cloudInit.inlineBase64", fmt.Sprintf("%d characters", len(c.InlineBase64)),
			"is not standard base64",
		}
	}
	if size := len(c.Bytes()); size > MaxInlineCloudInit {
		return &FieldError{
			"spec.cloudInit", fmt.Sprintf("%d bytes", size),
			fmt.Sprintf("is more than %d bytes; use secretRef", MaxInlineCloudInit),
		}
	}
	return c.SecretRef.validate("spec.cloudInit.secretRef")
}

func (r *SecretRef) validate(field string) error {
	if r == nil {
		return nil
	}
	if !secretPart.MatchString(r.Name) {
		return &FieldError{field + ".name", show(r.Name), "is not the name of a secret"}
	}
	if !secretPart.MatchString(r.Key) {
		return &FieldError{field + ".key", show(r.Key), "is not the key of a secret"}
	}
	return nil
}

func (h HealthCheck) validate() error {
	if err := h.ReplaceAfter.validate("spec.healthCheck.replaceAfter"); err != nil {
		return err
	}
	if len(h.Target) > maxPlacement {
		return &FieldError{"spec.healthCheck.target", show(h.Target), "is too long"}
	}
	return h.ProxyAuthRef.validate("spec.healthCheck.proxyAuthRef")
}

func (d Deadlines) validate() error {
	for _, f := range []struct {
		field string
		value Duration
	}{{"provisioning", d.Provisioning}, {"firstHealthy", d.FirstHealthy}, {"delete", d.Delete}} {
		if err := f.value.validate("spec.deadlines." + f.field); err != nil {
			return err
		}
	}
	return nil
}

// show cuts a value to what fits in an error.
func show(value string) string {
	if len(value) > shownValue {
		return strings.ToValidUTF8(value[:shownValue], "") + "…"
	}
	return value
}
