{{/*
A pod's template: dict "root" $, "component" NAME, "account" SUFFIX, "settings" its values, "args" list,
"grpc" whether it listens for OTLP over gRPC, "volume" the name of its directory, "emptyDir" of it or none.
*/}}
{{- define "epimetheus.pod" -}}
{{- $v := .root.Values -}}
{{- $name := include "epimetheus.name" .root -}}
{{- $annotations := deepCopy (.settings.annotations | default dict) -}}
{{- /* A changed configuration is another pod. */ -}}
{{- if not $v.existingConfigMap }}{{ $_ := set $annotations "checksum/config" (include "epimetheus.files" .root | sha256sum) }}{{ end -}}
metadata:
  labels:
    {{- include "epimetheus.labels" . | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $name }}{{ .account }}
  terminationGracePeriodSeconds: 60
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  topologySpreadConstraints:
    {{- range $key, $when := dict "topology.kubernetes.io/zone" $v.topologySpread.zone "kubernetes.io/hostname" $v.topologySpread.node }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: {{ $when }}
      labelSelector:
        matchLabels:
          {{- include "epimetheus.selector" $ | nindent 10 }}
    {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" }}
  {{- with index $.settings $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65534
    runAsGroup: 65534
    fsGroup: 65534
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: epimetheus
      image: {{ include "epimetheus.image" .root }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args:
        - --config.file=/etc/epimetheus/config/epimetheus.yml
        - --storage.tsdb.path=/{{ .volume }}
        {{- if $v.web.secret }}
        - --web.config.file=/etc/epimetheus/web/web.yml
        {{- end }}
        {{- with $v.web.externalUrl }}
        - --web.external-url={{ . }}
        {{- end }}
        {{- range concat .args (.settings.args | default list) }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
      {{- with $v.bucketSecret }}
      envFrom:
        - secretRef: {name: {{ . }}}
      {{- end }}
      ports:
        - {name: http, containerPort: 7272}
        {{- if .grpc }}
        - {name: otlp-grpc, containerPort: 4317}
        {{- end }}
      readinessProbe:
        httpGet: {path: {{ include "epimetheus.prefix" .root }}/-/ready, port: http, scheme: {{ include "epimetheus.scheme" .root | upper }}}
      # It answers from the first second, also while a start takes minutes.
      livenessProbe:
        httpGet: {path: {{ include "epimetheus.prefix" .root }}/-/healthy, port: http, scheme: {{ include "epimetheus.scheme" .root | upper }}}
      resources:
        {{- toYaml .settings.resources | nindent 8 }}
      securityContext:
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: config, mountPath: /etc/epimetheus/config, readOnly: true}
        {{- if $v.web.secret }}
        - {name: web, mountPath: /etc/epimetheus/web, readOnly: true}
        {{- end }}
        {{- range $i, $secret := $v.secrets }}
        - {name: secret-{{ $i }}, mountPath: /etc/epimetheus/secrets/{{ $secret }}, readOnly: true}
        {{- end }}
        - {name: {{ .volume }}, mountPath: /{{ .volume }}}
  volumes:
    - name: config
      configMap: {name: {{ $v.existingConfigMap | default $name }}}
    {{- with $v.web.secret }}
    - name: web
      secret: {secretName: {{ . }}}
    {{- end }}
    {{- range $i, $secret := $v.secrets }}
    - name: secret-{{ $i }}
      secret: {secretName: {{ $secret }}}
    {{- end }}
    {{- with .emptyDir }}
    - name: {{ $.volume }}
      emptyDir: {{ toJson . }}
    {{- end }}
{{- end }}

{{/* The path of the external URL: all of the server's paths are below it. */}}
{{- define "epimetheus.prefix" }}{{ with .Values.web.externalUrl }}{{ trimSuffix "/" (urlParse .).path }}{{ end }}{{ end }}

{{/* Claims of a StatefulSet; the argument is its section `storage`. */}}
{{- define "epimetheus.claims" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .className }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests: {storage: {{ .size }}}
{{- end }}

{{/* Retention by time and size, as JSON. */}}
{{- define "epimetheus.retention" -}}
{{- $args := list (printf "--storage.tsdb.retention.time=%s" .Values.retention.time) -}}
{{- with .Values.retention.size }}{{ $args = append $args (printf "--storage.tsdb.retention.size=%s" .) }}{{ end -}}
{{ toJson $args }}
{{- end }}

{{/* Flags of who takes pushes, as JSON. */}}
{{- define "epimetheus.pushArgs" -}}
{{- $args := list -}}
{{- if .Values.pushes.enabled -}}
{{- $args = append $args "--web.enable-ingest" -}}
{{- if .Values.pushes.otlpGrpc }}{{ $args = append $args "--web.otlp-grpc-listen-address=0.0.0.0:4317" }}{{ end -}}
{{- end -}}
{{ toJson $args }}
{{- end }}
