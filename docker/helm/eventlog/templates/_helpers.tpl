{{- define "eventlog.selector" -}}
app.kubernetes.io/name: eventlog
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "eventlog.labels" -}}
{{ include "eventlog.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
