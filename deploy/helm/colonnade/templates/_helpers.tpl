{{- define "colonnade.name" -}}
{{ .Values.name | default (printf "colonnade-%s" .Values.role) }}
{{- end }}

{{- define "colonnade.image" -}}
{{- $name := .Values.image.repository | default (printf "colonnade-%s" .Values.role) -}}
{{- if .Values.image.digest }}{{ printf "%s@%s" $name .Values.image.digest }}
{{- else if .Values.image.tag }}{{ printf "%s:%s" $name .Values.image.tag }}
{{- else }}{{ $name }}{{ end }}
{{- end }}

{{- define "colonnade.claim" -}}
{{ .Values.storage.existingClaim | default (include "colonnade.name" .) }}
{{- end }}

{{- define "colonnade.arguments" -}}
{{- $role := ternary (list "party" "net" "--config" "party.toml") (list "coordinator" "--config" "coordinator.toml") (eq .Values.role "party") -}}
{{- if .Values.metrics.enabled }}{{ $role = concat $role (list "--metrics" "$(POD_IP):9464") }}{{ end -}}
{{ toJson $role }}
{{- end }}

{{- define "colonnade.container" -}}
image: {{ include "colonnade.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "colonnade.secret" -}}
{{- if eq .Values.role "coordinator" }}{{ .Values.coordinator.secret }}{{ end -}}
{{- end }}

{{- define "colonnade.replicas" -}}
{{- $wanted := ternary .Values.coordinator.replicas 1 (eq .Values.role "coordinator") | int -}}
{{- if and (gt $wanted 1) (not (and .Values.coordinator.secret .Values.coordinator.databaseCidr)) }}
{{- fail "coordinator.replicas above 1 needs coordinator.secret and coordinator.databaseCidr: a volume is one pod's, and so is SQLite" }}
{{- end }}
{{- $wanted }}
{{- end }}
