{{/* Each takes { root, name }: the chart's own context, and `api`, `worker` or `dashboard`. */}}

{{/* With which the names of all objects begin. */}}
{{- define "sluice.fullname" -}}
{{- $name := .root.Values.fullnameOverride | default .root.Release.Name }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,51}[a-z0-9])?$" $name) }}
{{- fail (printf "The names of Services begin with the name of the release, so it must be a lower-case letter, then lower-case letters, digits and dashes, at most 53 in all, not %q. Choose another one, or set fullnameOverride." $name) }}
{{- end }}
{{- $name }}
{{- end }}

{{/* The labels of all pods of the release. */}}
{{- define "sluice.release" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "sluice.selector" -}}
{{ include "sluice.release" . }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* A label may have half of the length of a tag. */}}
{{- define "sluice.metadata" -}}
metadata:
  name: {{ include "sluice.fullname" . }}-{{ .name }}
  labels:
    {{- include "sluice.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | trimAll "-_." | quote }}
    app.kubernetes.io/managed-by: {{ .root.Release.Service }}
    helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sluice.image" -}}
{{- $image := .root.Values.image }}
{{- if $image.digest -}}
image: {{ $image.repository }}@{{ $image.digest }}
{{- else -}}
image: {{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* What the pods of all kinds have, the test's too. The user is `node` of the image. */}}
{{- define "sluice.pod" -}}
automountServiceAccountToken: false
{{- with .root.Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
# Otherwise each Service of the namespace adds variables to the environment.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.scheduling }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.containerSecurity" -}}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "sluice.port" -}}
{{ eq .name "api" | ternary 3000 3001 }}
{{- end }}

{{/* Also takes `flags` of Node, whether an autoscaler sets the number of replicas (`scaled`), and `maxUnavailable` (0). */}}
{{- define "sluice.deployment" -}}
{{- $values := .root.Values }}
{{- $own := get $values .name }}
{{- $ownSettings := $own.settings | default dict }}
{{- $settings := merge dict $ownSettings ($values.settings | default dict) }}
{{- range $name, $of := .root.Files.Get "files/settings.json" | fromJson }}
{{- if and $of.agreed (hasKey $ownSettings $name) }}
{{- fail (printf "%s.settings.%s: all processes that read %s need the same value, so set it in `settings`." $.name $name $name) }}
{{- end }}
{{- with and (hasKey $of "min") (get $settings $name) }}
{{- if or (lt (float64 .) $of.min) (and $of.max (gt (float64 .) $of.max)) }}
{{- fail (printf "%s must be %s, not %q." $name $of.bound .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $preStop := eq .name "worker" | ternary 0 (int $values.preStopSeconds) }}
{{- $secrets := list "REDIS_URL" "MONGODB_URL" }}
{{- if and (eq .name "dashboard") $settings.OIDC_ISSUER }}
{{- $secrets = append $secrets "OIDC_CLIENT_SECRET" }}
{{- end }}
{{- $taken := concat (keys $settings) $secrets (list "SHUTDOWN_GRACE_SECONDS" "PORT" "ADMIN_PORT") }}
{{- range $values.extraEnv }}
{{- if has (trimSuffix "_FILE" .name) $taken }}
{{- fail (printf "extraEnv: the chart sets %s. Use `settings`, `shutdownGraceSeconds` or `existingSecret`." .name) }}
{{- end }}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
{{ include "sluice.metadata" . }}
spec:
  {{- if not .scaled }}
  replicas: {{ $own.replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "sluice.selector" . | nindent 6 }}
  strategy:
    rollingUpdate: { maxSurge: 1, maxUnavailable: {{ .maxUnavailable | default 0 }} }
  template:
    metadata:
      labels:
        {{- include "sluice.selector" . | nindent 8 }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "sluice.pod" . | nindent 6 }}
      # preStopSeconds, where there is a preStop, SHUTDOWN_GRACE_SECONDS, and 5.
      terminationGracePeriodSeconds: {{ add $preStop (int $values.shutdownGraceSeconds) 5 }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "sluice.selector" $ | nindent 14 }}
          # Of a rollout, only the new pods count.
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      containers:
        - name: {{ .name }}
          {{- include "sluice.image" . | nindent 10 }}
          command: [node, {{ range .flags }}{{ . }}, {{ end }}apps/{{ .name }}/src/main.ts]
          env:
            - { name: SHUTDOWN_GRACE_SECONDS, value: {{ $values.shutdownGraceSeconds | quote }} }
            {{- range $secrets }}
            - { name: {{ . }}_FILE, value: /etc/sluice/{{ . }} }
            {{- end }}
            {{- if $values.caConfigMap }}
            - { name: NODE_EXTRA_CA_CERTS, value: /etc/sluice-ca/ca.crt }
            {{- end }}
            {{- range $name, $value := $settings }}
            - { name: {{ $name }}, value: {{ $value | quote }} }
            {{- end }}
            {{- with $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with $values.extraEnvFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- if ne .name "worker" }}
            - { name: http, containerPort: {{ include "sluice.port" . }} }
            {{- end }}
            - { name: admin, containerPort: 9464 }
          # A crowded node may take minutes to start a process. It has five before the kubelet restarts it.
          startupProbe:
            httpGet: { path: /livez, port: admin }
            periodSeconds: 5
            timeoutSeconds: 3
            failureThreshold: 60
          # A restart brings no server back: only /livez restarts.
          livenessProbe:
            httpGet: { path: /livez, port: admin }
            timeoutSeconds: 3
          readinessProbe:
            httpGet: { path: /readyz, port: admin }
            periodSeconds: 5
            # A server has 1.5 s to answer.
            timeoutSeconds: 3
          {{- if $preStop }}
          lifecycle:
            preStop:
              sleep: { seconds: {{ $preStop }} }
          {{- end }}
          {{- include "sluice.containerSecurity" . | nindent 10 }}
          resources: {{- toYaml $own.resources | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            - { name: secret, mountPath: /etc/sluice, readOnly: true }
            {{- if $values.caConfigMap }}
            - { name: ca, mountPath: /etc/sluice-ca, readOnly: true }
            {{- end }}
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          {{- toYaml ($own.spillVolume | default (dict "emptyDir" (dict "sizeLimit" "64Mi"))) | nindent 10 }}
        - name: secret
          secret:
            secretName: {{ $values.existingSecret }}
            defaultMode: 0440
            items:
              {{- range $secrets }}
              - { key: {{ . }}, path: {{ . }} }
              {{- end }}
        {{- with $values.caConfigMap }}
        - name: ca
          configMap: { name: {{ . }} }
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- define "sluice.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "sluice.metadata" . }}
spec:
  maxUnavailable: 1
  # While Redis or MongoDB is unavailable, no pod is ready, and nodes can be drained all the same.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "sluice.selector" . | nindent 6 }}
{{- end }}

{{/* The Service, and the Ingress if its host is set. */}}
{{- define "sluice.service" -}}
{{- $own := get .root.Values .name -}}
apiVersion: v1
kind: Service
{{ include "sluice.metadata" . }}
  {{- with $own.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $own.service.type }}
  selector: {{- include "sluice.selector" . | nindent 4 }}
  ports:
    - { name: http, port: {{ include "sluice.port" . }}, targetPort: http }
{{- with $own.ingress }}
{{- if .host }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
{{ include "sluice.metadata" $ }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- if .tlsSecret }}
  tls:
    - { hosts: [{{ .host | quote }}], secretName: {{ .tlsSecret }} }
  {{- end }}
  rules:
    - host: {{ .host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ include "sluice.fullname" $ }}-{{ $.name }}
                port: { name: http }
{{- end }}
{{- end }}
{{- end }}
