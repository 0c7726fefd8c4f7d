{{/* The name of the release's objects. */}}
{{- define "epimetheus.name" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 45 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 45 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What selects pods: dict "root" $ "component" NAME; without a component all members. */}}
{{- define "epimetheus.selector" -}}
app.kubernetes.io/name: epimetheus
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "epimetheus.labels" -}}
{{ include "epimetheus.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* name, namespace and labels of an object: dict "root" $ "component" NAME "suffix" "-shard" */}}
{{- define "epimetheus.metadata" -}}
name: {{ include "epimetheus.name" .root }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "epimetheus.labels" . | nindent 2 }}
{{- end }}

{{- define "epimetheus.image" -}}
{{- $i := .Values.image -}}
{{ $i.repository }}{{ if $i.digest }}@{{ $i.digest }}{{ else }}:{{ $i.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Namespaces whose pods are discovered, as JSON; none: all. */}}
{{- define "epimetheus.namespaces" -}}
{{- $own := ternary (list .Release.Namespace) list (eq .Values.rbac.scope "namespace") -}}
{{ .Values.scrape.namespaces | default $own | toJson }}
{{- end }}

{{- define "epimetheus.scheme" }}{{ ternary "https" "http" .Values.web.tls }}{{ end }}

{{/* The component that dashboards and people ask. */}}
{{- define "epimetheus.front" }}{{ ternary "query" "server" (eq .Values.mode "cluster") }}{{ end }}

{{/* Components of the mode, as JSON. */}}
{{- define "epimetheus.components" -}}
{{- $all := list "server" -}}
{{- if eq .Values.mode "cluster" -}}
{{- $all = list "shard" "query" -}}
{{- if .Values.caretaker.enabled }}{{ $all = append $all "caretaker" }}{{ end -}}
{{- end -}}
{{ toJson $all }}
{{- end }}
