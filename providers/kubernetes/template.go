package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	strict "sigs.k8s.io/json"

	"github.com/egressfleet/egressfleet/providers"
)

// template is a podTemplate that was checked, as JSON; nil changes nothing.
type template []byte

// overlay is what a podTemplate may have.
type overlay struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1.PodSpec `json:"spec"`
}

func resolveTemplate(c Config, set *settings) error {
	raw := strings.TrimSpace(string(c.PodTemplate))
	if raw == "" || raw == "null" {
		return nil
	}
	if err := checkTemplate(c.PodTemplate); err != nil {
		return fmt.Errorf("podTemplate: %w", err)
	}
	set.template = template(raw)
	// What cannot be merged at all is found now, and not by the first Proxy.
	if _, err := set.template.over(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{}, Spec: corev1.PodSpec{}}); err != nil {
		return err
	}
	return nil
}

// checkTemplate is strict about every key but the directives of a strategic merge. Its
// errors name keys and never values, which may be secret.
func checkTemplate(raw json.RawMessage) error {
	var loose any
	if err := json.Unmarshal(raw, &loose); err != nil {
		return fmt.Errorf("is no JSON object of metadata and spec")
	}
	plain, err := json.Marshal(withoutDirectives(loose))
	if err != nil {
		return err
	}
	var checked overlay
	unknown, err := strict.UnmarshalStrict(plain, &checked)
	if err != nil {
		return fmt.Errorf("does not fit a Pod: %w", err)
	}
	if len(unknown) > 0 {
		return unknown[0]
	}
	for _, keys := range []map[string]string{checked.Metadata.Labels, checked.Metadata.Annotations} {
		for _, key := range sorted(keys) {
			if providers.IsMark(key) {
				return fmt.Errorf("metadata: %q is kept for the marks", key)
			}
		}
	}
	return nil
}

// withoutDirectives leaves out keys such as $patch, which are no fields of a Pod.
func withoutDirectives(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if !strings.HasPrefix(key, "$") {
				out[key] = withoutDirectives(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, member := range v {
			out[i] = withoutDirectives(member)
		}
		return out
	default:
		return value
	}
}

// over returns the Pod with the template laid over it.
func (t template) over(pod *corev1.Pod) (*corev1.Pod, error) {
	if len(t) == 0 {
		return pod, nil
	}
	base, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	both, err := strategicpatch.StrategicMergePatch(base, t, corev1.Pod{})
	if err != nil {
		return nil, permanent("podTemplate: cannot be laid over a Pod: %w", err)
	}
	merged := new(corev1.Pod)
	if err := json.Unmarshal(both, merged); err != nil {
		return nil, permanent("podTemplate: makes no Pod: %w", err)
	}
	return merged, nil
}
