{{- define "leaf.name" -}}
{{- ternary .Release.Name (printf "%s-leaf" .Release.Name) (contains "leaf" .Release.Name) | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "leaf.selector" -}}
app.kubernetes.io/name: leaf
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "leaf.labels" -}}
{{ include "leaf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "leaf.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}

{{- define "leaf.check" -}}
{{- if and .Values.store.secret .Values.cluster.secret }}
{{- fail "the servers of a cluster keep the counters themselves: set store.secret or cluster.secret" }}
{{- end }}
{{- if and .Values.cluster.found (not .Values.cluster.secret) }}
{{- fail "cluster.found needs cluster.secret" }}
{{- end }}
{{- if and (not .Values.store.secret) (not .Values.persistence.enabled) }}
{{- fail "without a store the counters are in the server's own volume: name the Secret with its URL in store.secret, or set persistence.enabled and replicas to 1" }}
{{- end }}
{{- if and (not .Values.store.secret) (not .Values.cluster.secret) (ne (int .Values.replicas) 1) }}
{{- fail "servers without a common store give out the same IDs: name the Secret with its URL in store.secret, or make them a cluster with cluster.secret, or set replicas to 1" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.tokenSecret) (not .Values.config.public_read) }}
{{- fail "the servers refuse /metrics to Prometheus: set config.public_read, or name a Secret with a token in serviceMonitor.tokenSecret" }}
{{- end }}
{{- range .Values.env }}
{{- if has .name (list "LEAF_LISTEN" "LEAF_RESP" "LEAF_GRPC" "LEAF_DATA" "LEAF_DRAIN_DELAY" "LEAF_CLUSTER" "LEAF_CLUSTER_ADDRESS" "LEAF_CLUSTER_LISTEN" "LEAF_CLUSTER_CA" "LEAF_CLUSTER_CERT" "LEAF_CLUSTER_KEY") }}{{ fail (printf "env must not set %s: the chart does" .name) }}{{ end }}
{{- end }}
{{- range list "name" "instance" "version" }}
{{- if hasKey $.Values.podLabels (printf "app.kubernetes.io/%s" .) }}{{ fail (printf "podLabels must not set app.kubernetes.io/%s: the chart does" .) }}{{ end }}
{{- end }}
{{- range list "listen" "resp" "grpc" "data" "store" "store_file" "workers" "workers_file" "tokens_file" "drain_delay" "cluster" "cluster_address" "cluster_listen" "cluster_ca" "cluster_cert" "cluster_key" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s would be overruled: the chart sets it" .) }}{{ end }}
{{- end }}
{{- end }}

{{- define "leaf.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "leaf.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "leaf.peers" -}}
{{- range $i := until (int .Values.replicas) }}{{ if $i }},{{ end }}{{ include "leaf.name" $ }}-{{ $i }}.{{ include "leaf.name" $ }}-peers:2380{{ end }}
{{- end }}

{{- define "leaf.certificates" -}}
- {name: LEAF_CLUSTER_CA, value: /secrets/peers/ca.crt}
- {name: LEAF_CLUSTER_CERT, value: /secrets/peers/tls.crt}
- {name: LEAF_CLUSTER_KEY, value: /secrets/peers/tls.key}
{{- end }}

{{- define "leaf.claim" -}}
accessModes: [{{ .Values.persistence.accessMode }}]
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .Values.persistence.size }}}}
{{- end }}

{{- define "leaf.pod" -}}
metadata:
  labels:
    {{- include "leaf.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false # their variables could pass for settings
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext: {{- include "leaf.podSecurity" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if gt (int .Values.replicas) 1 }}
  topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (ne .Values.cluster.secret "") }}
    labelSelector:
      matchLabels: {{- include "leaf.selector" . | nindent 8 }}
  {{- end }}
  containers:
  - name: leaf
    image: {{ include "leaf.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve, --config, /etc/leaf/leaf.yaml]
    env:
    - {name: LEAF_LISTEN, value: ":8080"}
    - {name: LEAF_RESP, value: {{ ternary ":6380" "off" .Values.resp.enabled | quote }}}
    - {name: LEAF_GRPC, value: {{ ternary ":9090" "off" .Values.grpc.enabled | quote }}}
    - {name: LEAF_DATA, value: /data}
    - {name: LEAF_DRAIN_DELAY, value: {{ .Values.drainDelay | quote }}}
    {{- if .Values.store.secret }}
    - {name: LEAF_STORE_FILE, value: /secrets/store/{{ .Values.store.key }}}
    {{- end }}
    {{- if .Values.cluster.secret }}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: LEAF_CLUSTER, value: "{{ include "leaf.peers" . }}"}
    - {name: LEAF_CLUSTER_ADDRESS, value: $(POD_NAME).{{ include "leaf.name" . }}-peers:2380}
    - {name: LEAF_CLUSTER_LISTEN, value: ":2380"}
    {{- include "leaf.certificates" . | nindent 4 }}
    {{- end }}
    {{- if .Values.workers.secret }}
    - {name: LEAF_WORKERS_FILE, value: /secrets/workers/{{ .Values.workers.key }}}
    {{- end }}
    {{- if .Values.tokens.secret }}
    - {name: LEAF_TOKENS_FILE, value: /secrets/tokens/tokens.yaml}
    {{- end }}
    {{- if .Values.tls.secret }}
    - {name: LEAF_TLS_CERT, value: /secrets/tls/tls.crt}
    - {name: LEAF_TLS_KEY, value: /secrets/tls/tls.key}
    {{- end }}
    {{- with .Values.env }}{{ toYaml . | nindent 4 }}{{ end }}
    ports:
    - {name: http, containerPort: 8080}
    {{- if .Values.resp.enabled }}
    - {name: resp, containerPort: 6380}
    {{- end }}
    {{- if .Values.grpc.enabled }}
    - {name: grpc, containerPort: 9090}
    {{- end }}
    {{- if .Values.cluster.secret }}
    - {name: peers, containerPort: 2380}
    {{- end }}
    # With /readyz as the liveness probe, Kubernetes would restart the servers while the database is away.
    readinessProbe:
      httpGet: {path: /readyz, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne .Values.tls.secret "") }}}
      periodSeconds: 2
      timeoutSeconds: 2
    livenessProbe:
      httpGet: {path: /healthz, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne .Values.tls.secret "") }}}
      timeoutSeconds: 5
    resources: {{- toYaml .Values.resources | nindent 6 }}
    securityContext: {{- include "leaf.security" . | nindent 6 }}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: config, mountPath: /etc/leaf, readOnly: true}
    {{- range $name, $secret := include "leaf.secrets" . | fromYaml }}
    - {name: {{ $name }}, mountPath: /secrets/{{ $name }}, readOnly: true}
    {{- end }}
  volumes:
  {{- if not .Values.persistence.enabled }}
  - {name: data, emptyDir: {}} # a container that crashed finds its worker ID there
  {{- end }}
  - {name: config, configMap: {name: {{ include "leaf.name" . }}}}
  {{- range $name, $secret := include "leaf.secrets" . | fromYaml }}
  - {name: {{ $name }}, secret: {secretName: {{ $secret }}}}
  {{- end }}
{{- end }}

{{- define "leaf.secrets" -}}
{{- range $name, $secret := dict "store" .Values.store.secret "peers" .Values.cluster.secret "workers" .Values.workers.secret "tokens" .Values.tokens.secret "tls" .Values.tls.secret }}
{{- if $secret }}
{{ $name }}: {{ $secret }}
{{- end }}
{{- end }}
{{- end }}
