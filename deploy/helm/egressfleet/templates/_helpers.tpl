{{- define "egressfleet.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "egressfleet.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "egressfleet.labels" -}}
{{ include "egressfleet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "egressfleet.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "egressfleet.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Deployments, as a list under "parts": name, roles, replicas, resources, and what each needs. */}}
{{- define "egressfleet.parts" -}}
parts:
{{- if .Values.together }}
  - {name: worker, roles: "api,worker", worker: true, api: true}
{{- else }}
  - {name: worker, roles: worker, worker: true, api: false}
  - {name: api, roles: api, worker: false, api: true}
{{- end }}
{{- if .Values.outside.enabled }}
  - {name: outside, roles: outside, worker: false, api: false}
{{- end }}
{{- end -}}

{{/* Whether a provider works in this cluster as the service account: the only use of its token. */}}
{{- define "egressfleet.inCluster" -}}
{{- range .Values.providers -}}
{{- if and (eq .type "kubernetes") (not (dig "kubernetes" "kubeconfig" "" .)) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* worker.yaml. Roles differ between Deployments, and are a variable of each. */}}
{{- define "egressfleet.config" -}}
installation: {{ required "installation: a DNS label, one per Temporal namespace, is required" .Values.installation | quote }}
{{- if .Values.cloudInitSecrets }}
secretsDir: /etc/egressfleet/secrets
{{- end }}
api:
  host: "0.0.0.0"
  port: {{ .Values.api.port }}
  tokensFile: /etc/egressfleet/api-tokens/{{ .Values.api.tokensFile.key }}
{{- if .Values.api.tls.secret }}
  tls: {certificate: /etc/egressfleet/api-tls/tls.crt, key: /etc/egressfleet/api-tls/tls.key}
{{- end }}
metrics:
  host: "0.0.0.0"
  port: {{ .Values.metrics.port }}
log: {format: json}
{{- with .Values.codec }}
{{- if .keysSecret }}
codec:
  keys: /etc/egressfleet/codec-keys
  {{- with .current }}
  current: {{ . | quote }}
  {{- end }}
  {{- if .tokensSecret.name }}
  tokensFile: /etc/egressfleet/codec-tokens/{{ .tokensSecret.key }}
  origins: {{ .origins | toJson }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
