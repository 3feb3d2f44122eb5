{{- define "egressfleet.temporal" -}}
{{- with .Values.temporal -}}
- {name: TEMPORAL_ADDRESS, value: {{ required "temporal.address: host:port of the Temporal server is required" .address | quote }}}
- {name: TEMPORAL_NAMESPACE, value: {{ .namespace | quote }}}
{{- if .apiKeySecret.name }}
- name: TEMPORAL_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ .apiKeySecret.name }}, key: {{ .apiKeySecret.key }}}
{{- end }}
{{- if .tls.enabled }}
- {name: TEMPORAL_TLS, value: "true"}
{{- if .tls.secret }}
- {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/egressfleet/temporal-tls/tls.crt}
- {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/egressfleet/temporal-tls/tls.key}
{{- if .tls.serverCA }}
- {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/egressfleet/temporal-tls/ca.crt}
{{- end }}
{{- end }}
{{- with .tls.serverName }}
- {name: TEMPORAL_TLS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
Secrets of a Pod, as a list under "secrets": volume, Secret, path below /etc/egressfleet. Those of backends and of
cloud-init are the worker's alone.
*/}}
{{- define "egressfleet.secrets" -}}
{{- $part := .part -}}
secrets:
{{- with .root.Values }}
{{- if and .temporal.tls.enabled .temporal.tls.secret }}
  - {volume: temporal-tls, secret: {{ .temporal.tls.secret }}, path: temporal-tls}
{{- end }}
{{- if .codec.keysSecret }}
  - {volume: codec-keys, secret: {{ .codec.keysSecret }}, path: codec-keys}
{{- end }}
{{- if $part.api }}
  - {volume: api-tokens, secret: {{ .api.tokensFile.secret }}, path: api-tokens}
{{- if .api.tls.secret }}
  - {volume: api-tls, secret: {{ .api.tls.secret }}, path: api-tls}
{{- end }}
{{- if .codec.tokensSecret.name }}
  - {volume: codec-tokens, secret: {{ .codec.tokensSecret.name }}, path: codec-tokens}
{{- end }}
{{- end }}
{{- if $part.worker }}
{{- range .providers }}
{{- if .secret }}
  - {volume: provider-{{ .name }}, secret: {{ .secret }}, path: providers/{{ .name }}, optional: true}
{{- end }}
{{- end }}
{{- range $i, $name := .cloudInitSecrets }}
  - {volume: cloud-init-{{ $i }}, secret: {{ $name }}, path: secrets/{{ $name }}, optional: true}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "egressfleet.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: config, mountPath: /etc/egressfleet/config, readOnly: true}
{{- range (include "egressfleet.secrets" . | fromYaml).secrets }}
- {name: {{ .volume }}, mountPath: /etc/egressfleet/{{ .path }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "egressfleet.volumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 64Mi}}
- {name: config, configMap: {name: {{ include "egressfleet.fullname" .root }}}}
{{- range (include "egressfleet.secrets" . | fromYaml).secrets }}
# Keys that everybody can read are refused; the group is that of the Pod.
- {name: {{ .volume }}, secret: {secretName: {{ .secret }}, defaultMode: 0440{{ if .optional }}, optional: true{{ end }}}}
{{- end }}
{{- end -}}
