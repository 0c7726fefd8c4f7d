{{/* The members' own profiles. Each is no Go program: it serves a CPU profile and nothing else. */}}
{{- define "epimetheus.memberJob" -}}
job_name: epimetheus
profiling_config:
  pprof_config:
    memory: {enabled: false}
    block: {enabled: false}
    mutex: {enabled: false}
    goroutine: {enabled: false}
    goroutineleak: {enabled: false}
{{- if eq .Values.mode "cluster" }}
kubernetes_sd_configs:
  - role: pod
    namespaces: {own_namespace: true}
    selectors:
      - role: pod
        label: app.kubernetes.io/name=epimetheus,app.kubernetes.io/instance={{ .Release.Name }}
relabel_configs:
  - source_labels: [__meta_kubernetes_pod_container_port_name]
    regex: http
    action: keep
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
  - {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_component], target_label: component}
{{- else }}
static_configs:
  - targets: ["localhost:7272"]
{{- end }}
{{- end }}

{{/* The jobs of files/annotations.yml that the values ask for, in their namespaces; and further ones. */}}
{{- define "epimetheus.jobs" -}}
{{- $namespaces := include "epimetheus.namespaces" . | fromJsonArray -}}
{{- $jobs := list -}}
{{- range (.Files.Get "files/annotations.yml" | fromYaml).scrape_configs -}}
{{- if and $.Values.scrape.annotations (hasSuffix "-annotations" .job_name) -}}
{{- range $sd := .kubernetes_sd_configs -}}
{{- if $namespaces }}{{ $_ := set $sd "namespaces" (dict "names" $namespaces) }}{{ end -}}
{{- end -}}
{{- $jobs = append $jobs . -}}
{{- else if and (eq .job_name "kube-apiserver") $.Values.scrape.apiServers (eq $.Values.rbac.scope "cluster") -}}
{{- $jobs = append $jobs . -}}
{{- end -}}
{{- end -}}
{{- if .Values.scrape.members -}}
{{- $own := include "epimetheus.memberJob" . | fromYaml -}}
{{- $jobs = append $jobs (merge (deepCopy .Values.scrape.memberSettings) $own) -}}
{{- end -}}
{{ concat $jobs .Values.scrape.configs | toJson }}
{{- end }}

{{/* Every file of the configuration, as the data of a ConfigMap. */}}
{{- define "epimetheus.files" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "scrape_configs" (include "epimetheus.jobs" . | fromJsonArray) -}}
{{- with .Values.bucket }}{{ $_ := set $config "bucket" . }}{{ end -}}
{{- with .Values.ruleFiles }}{{ $_ := set $config "rule_files" (keys . | sortAlpha) }}{{ end -}}
epimetheus.yml: |
  {{- toYaml $config | nindent 2 }}
{{- range $name, $rules := .Values.ruleFiles }}
{{ $name }}: |
  {{- toYaml $rules | nindent 2 }}
{{- end }}
{{- end }}
