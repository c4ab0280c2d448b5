import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NODE_FLAGS } from '@sluice/local'
import { Ajv } from 'ajv'
import { type TestContext, test } from 'vitest'
import { parse as parseYaml, stringify } from 'yaml'
import { needs } from '../runner/programs.ts'
import { faultsOfCustom, isCustom } from './crds.ts'
import {
  CHART,
  hasHelm,
  KUBERNETES,
  MANIFESTS,
  type Manifest,
  objectsOf,
  parse,
  render,
  root,
  withHash,
} from './manifests.ts'

const read = (path: string) => readFileSync(root + path, 'utf8')
const EVERYTHING = 'deploy/kubernetes/everything.yaml'
const PLATFORM = 'test/deploy/platform.yaml'
const deploymentsOf = (manifests: readonly Manifest[]) =>
  manifests.filter(({ kind }) => kind === 'Deployment') as unknown as Deployment[]

for (const [path, args] of Object.entries(MANIFESTS)) {
  test(`${path} is what the chart makes; if not, run \`pnpm run manifests\``, () => {
    const text = read(path)
    assert.equal(text, withHash(objectsOf(text)))
  })

  test.skipIf(!hasHelm)(
    `Helm renders ${path} (go install helm.sh/helm/v3/cmd/helm@v3.22.0)`,
    () => {
      assert.equal(read(path), render(args))
    },
  )

  test(`custom resources in ${path} are valid`, () => {
    assert.deepEqual(parse(read(path)).filter(isCustom).flatMap(faultsOfCustom), [])
  })

  test(`${path} is valid in Kubernetes ${KUBERNETES}`, needs('kubernetes-validate'), (t) => {
    assert.equal(faultsOfCore(t, parse(read(path))), '')
  })
}

test('a misspelt field and a wrong type in a custom resource are found', () => {
  const broken = parse(
    read(EVERYTHING)
      .replace('minReplicaCount:', 'minReplicas:')
      .replace('jobLabel: app', 'jobLabel: 1 #'),
  )
  const faults = broken.filter(isCustom).flatMap(faultsOfCustom)
  assert.match(faults.join('\n'), /additional properties.*minReplicas/)
  assert.match(faults.join('\n'), /\/spec\/jobLabel must be string/)
})

for (const [what, from, to] of [
  ['a misspelt field', 'terminationGracePeriodSeconds', 'terminationGraceSeconds'],
  ['a wrong type', 'minReplicas: 2', 'minReplicas: two'],
  [
    'a probe without its port',
    'httpGet: { path: /livez, port: admin }',
    'httpGet: { path: /livez }',
  ],
] as const) {
  test(`${what} in an object of Kubernetes is found`, needs('kubernetes-validate'), (t) => {
    assert.notEqual(faultsOfCore(t, parse(read(EVERYTHING).replace(from, to))), '')
  })
}

test('each pod ends after its preStop and SHUTDOWN_GRACE_SECONDS, and starts with the flags of `start`', () => {
  const pods = deploymentsOf(parse(read(EVERYTHING))).map(({ spec }) => spec.template.spec)
  const facts = pods.map(({ terminationGracePeriodSeconds: seconds, containers: [container] }) => ({
    seconds,
    sleeps: container.lifecycle?.preStop.sleep.seconds ?? 0,
    grace: Number(container.env.find(({ name }) => name === 'SHUTDOWN_GRACE_SECONDS')?.value),
    command: container.command,
  }))
  assert.equal(facts.length, 3)
  for (const { seconds, sleeps, grace } of facts) assert.equal(seconds, sleeps + grace + 5)
  for (const app of ['api', 'worker']) {
    assert.ok(
      facts.some(
        ({ command }) => `${command}` === `${['node', ...NODE_FLAGS, `apps/${app}/src/main.ts`]}`,
      ),
    )
  }
})

test('pods obey the policy `restricted`, and can write to /tmp alone', () => {
  const deployments = deploymentsOf(Object.keys(MANIFESTS).flatMap((path) => parse(read(path))))
  assert.equal(deployments.length, 9)
  for (const pod of deployments.map(({ spec }) => spec.template.spec)) {
    assert.equal(pod.automountServiceAccountToken, false)
    assert.partialDeepStrictEqual(pod.securityContext, {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers'])
      assert.ok(!(field in pod), field)
    for (const { name, ...volume } of pod.volumes)
      assert.match(Object.keys(volume).join(), /^(emptyDir|ephemeral|secret|configMap)$/, name)
    const writable = pod.volumes
      .filter((volume) => 'emptyDir' in volume || 'ephemeral' in volume)
      .map(({ name }) => name)
    for (const { securityContext, ports, volumeMounts } of pod.containers) {
      assert.deepEqual(securityContext, LEAST_RIGHTS)
      for (const port of ports) assert.ok(!('hostPort' in port), JSON.stringify(port))
      const paths = volumeMounts
        .filter(({ name }) => writable.includes(name))
        .map(({ mountPath }) => mountPath)
      assert.deepEqual(paths, ['/tmp'])
    }
  }
})

test('networks: admin ports for the monitoring alone, API and dashboard each for its own peers, workers for nobody else', () => {
  for (const [path, { apiFrom, dashboardFrom, network }] of Object.entries(NETWORKS)) {
    const policies = parse(read(path)).filter(({ kind }) => kind === 'NetworkPolicy')
    const release = { 'app.kubernetes.io/name': 'sluice', 'app.kubernetes.io/instance': 'sluice' }
    const pods = (component: string) => ({
      matchLabels: { ...release, 'app.kubernetes.io/component': component },
    })
    const http = (component: string, from: object[]) => ({
      podSelector: pods(component),
      policyTypes: ['Ingress'],
      ingress: [{ ports: [{ port: 'http' }], ...(from.length > 0 && { from }) }],
    })
    const dns = { ports: ['UDP', 'TCP'].map((protocol) => ({ port: 53, protocol })) }
    const own = [dns, { to: [{ podSelector: pods('api') }] }]
    const ofAll = {
      podSelector: { matchLabels: release },
      policyTypes: network.egress ? ['Ingress', 'Egress'] : ['Ingress'],
      ...(network.from && { ingress: [{ ports: [{ port: 'admin' }], from: network.from }] }),
      ...(network.egress && { egress: [...own, ...network.egress] }),
    }
    const test = apiFrom.length > 0 ? [{ podSelector: pods('test') }] : []
    assert.deepEqual(
      Object.fromEntries(policies.map(({ metadata, spec }) => [metadata.name.split('-')[1], spec])),
      {
        network: ofAll,
        api: http('api', [...apiFrom, ...test]),
        dashboard: http('dashboard', dashboardFrom),
      },
    )
  }
})

const ofNamespace = (name: string) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
})
const NETWORKS: Record<string, Network> = {
  'deploy/kubernetes/sluice.yaml': {
    apiFrom: [],
    dashboardFrom: [],
    network: { from: [ofNamespace('monitoring')] },
  },
  [EVERYTHING]: {
    apiFrom: [ofNamespace('ingress-nginx')],
    dashboardFrom: [ofNamespace('ingress-nginx')],
    network: { from: [ofNamespace('monitoring')] },
  },
  [PLATFORM]: {
    apiFrom: [],
    dashboardFrom: [],
    network: {
      egress: [
        { ports: [{ port: 6379 }], to: [{ podSelector: { matchLabels: { app: 'redis' } } }] },
        { ports: [{ port: 27017 }], to: [{ ipBlock: { cidr: '10.1.0.0/16' } }] },
      ],
    },
  },
}

interface Network {
  apiFrom: object[]
  dashboardFrom: object[]
  network: { from?: object[]; egress?: object[] }
}

test('pods get what a platform adds, and objects their labels', () => {
  const manifests = parse(read(PLATFORM))
  for (const { kind, metadata } of manifests) {
    assert.match(metadata.name, /^ingestion-/, kind)
    assert.partialDeepStrictEqual(metadata.labels, {
      'app.kubernetes.io/version': '1.2.3_rc.1',
      'app.kubernetes.io/managed-by': 'Helm',
      'helm.sh/chart': 'sluice-0.1.0',
    })
  }
  for (const { spec } of deploymentsOf(manifests)) {
    const { metadata, spec: pod } = spec.template
    assert.equal(metadata.annotations?.['reloader.stakater.com/auto'], 'true')
    assert.equal(metadata.labels['azure.workload.identity/use'], 'true')
    assert.partialDeepStrictEqual(pod, { serviceAccountName: 'sluice', priorityClassName: 'high' })
    const [{ image, env, envFrom, volumeMounts }] = pod.containers
    assert.match(image, /^registry\.example\/sluice@sha256:8f3b/)
    assert.ok(env.some(({ name }) => name === 'OTEL_EXPORTER_OTLP_HEADERS'))
    assert.deepEqual(envFrom, [{ configMapRef: { name: 'proxy' } }])
    assert.ok(pod.volumes.some(({ name }) => name === 'zones'))
    assert.deepEqual(volumeMounts.at(-1), {
      name: 'zones',
      mountPath: '/usr/share/zoneinfo',
      readOnly: true,
    })
    assert.equal(
      env.find(({ name }) => name === 'TRACE_URL')?.value,
      'https://traces.example/{traceId}',
    )
  }
  const service = manifests.find(
    ({ kind, metadata }) => kind === 'Service' && metadata.name === 'ingestion-api',
  )
  assert.partialDeepStrictEqual(service, {
    metadata: { annotations: { 'networking.gke.io/load-balancer-type': 'Internal' } },
    spec: { type: 'LoadBalancer' },
  })
})

test('a slow start is no failure, and a worker that cannot reach MongoDB stops no rollback', () => {
  for (const path of Object.keys(MANIFESTS)) {
    for (const { metadata, spec } of deploymentsOf(parse(read(path)))) {
      const { startupProbe, livenessProbe } = spec.template.spec.containers[0]
      assert.deepEqual(startupProbe.httpGet, livenessProbe.httpGet)
      assert.ok(startupProbe.periodSeconds * startupProbe.failureThreshold >= 300)
      const { maxUnavailable } = spec.strategy.rollingUpdate
      assert.equal(maxUnavailable, metadata.name.endsWith('-worker') ? 1 : 0)
    }
  }
})

test('the documented alerts are a valid PrometheusRule', () => {
  const spec = parseYaml(read('docs/monitoring/alerts.yml'))
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sluice' },
  }
  assert.deepEqual(faultsOfCustom({ ...rule, spec }), [])
  assert.notDeepEqual(
    faultsOfCustom({ ...rule, spec: { groups: [{ rules: spec.groups[0].rules }] } }),
    [],
  )
})

test.skipIf(!hasHelm)(
  'the chart has the documented alerts and dashboard for Grafana, with their labels',
  () => {
    const flags = [
      '--set',
      'prometheusRule.enabled=true,grafanaDashboard.enabled=true,prometheusRule.labels.team=data',
    ]
    const made = parse(render(flags))
    const alerts = made.find(({ kind }) => kind === 'PrometheusRule')
    assert.equal(alerts?.metadata.labels?.team, 'data')
    assert.deepEqual(alerts?.spec, parseYaml(read('docs/monitoring/alerts.yml')))
    const grafana = made.find(({ kind }) => kind === 'ConfigMap')
    assert.equal(grafana?.metadata.labels?.grafana_dashboard, '1')
    assert.deepEqual(grafana?.data, { 'sluice.json': read('docs/monitoring/grafana.json') })
  },
)

const FAULTS_OF_SCHEMA = [
  ['an unknown setting', { settings: { MAX_QUTES: '5' } }, '/settings', 'MAX_QUTES'],
  ['a wrong value', { settings: { MAX_QUOTES: 'lots' } }, '/settings/MAX_QUOTES', 'pattern'],
  [
    'a setting of another kind',
    { api: { settings: { CONCURRENCY: '5' } } },
    '/api/settings',
    'CONCURRENCY',
  ],
  [
    'a wrong value of a kind',
    { worker: { settings: { LOG_LEVEL: 'loud' } } },
    '/worker/settings/LOG_LEVEL',
    'silent',
  ],
  ['a setting that the chart sets', { settings: { ADMIN_PORT: '1' } }, '/settings', 'ADMIN_PORT'],
  ['a secret', { settings: { REDIS_URL: 'redis://secret' } }, '/settings', 'REDIS_URL'],
  ['a number', { settings: { MAX_QUOTES: 5 } }, '/settings/MAX_QUOTES', 'string'],
  ['a name that no Secret has', { existingSecret: 'My_Secret' }, '/existingSecret', 'pattern'],
  ['no Secret', { existingSecret: '' }, '/existingSecret', 'pattern'],
  [
    'a tag in the repository',
    { image: { repository: 'r/sluice:1' } },
    '/image/repository',
    'pattern',
  ],
  ['a digest without its kind', { image: { digest: '8f3b' } }, '/image/digest', 'pattern'],
  [
    'a label by which pods are found',
    { podLabels: { 'app.kubernetes.io/name': 'x' } },
    '/podLabels/app.kubernetes.io~1name',
    'false schema',
  ],
] as const

test('the schema of the values refuses unknown settings, wrong values and impossible names', () => {
  const check = new Ajv({ strict: false, allErrors: true }).compile(
    JSON.parse(read(`${CHART}/values.schema.json`)),
  )
  const values = parseYaml(read(`${CHART}/values.yaml`))
  for (const file of globSync(`${CHART}/ci/*.yaml`, { cwd: root })) {
    assert.ok(
      check(merged(values, parseYaml(read(file)))),
      `${file}: ${JSON.stringify(check.errors)}`,
    )
  }
  const valid = { LIST_SOURCES: 'on', LOG_LEVEL: '', TENANT_SHARE: '0.25' }
  assert.ok(check(merged(values, { settings: valid, api: { settings: { MAX_QUOTES: '20' } } })))
  for (const [what, override, path, message] of FAULTS_OF_SCHEMA) {
    assert.equal(check(merged(values, override)), false, what)
    const faults =
      check.errors?.map((error) => `${error.instancePath} ${JSON.stringify(error)}`) ?? []
    assert.ok(
      faults.some((fault) => fault.startsWith(`${path} `) && fault.includes(message)),
      `${what}: ${faults}`,
    )
  }
})

/** As Helm merges values: objects by their fields, everything else whole. */
function merged(values: unknown, over: unknown): unknown {
  if (!isObject(values) || !isObject(over)) return over
  const fields = Object.entries(over).map(([name, value]) => [name, merged(values[name], value)])
  return Object.fromEntries(
    Object.entries({ ...values, ...Object.fromEntries(fields) }).filter(([, of]) => of !== null),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const LEAST_RIGHTS = {
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
}

interface Deployment {
  metadata: { name: string }
  spec: {
    strategy: { rollingUpdate: { maxUnavailable: number } }
    template: { metadata: Metadata; spec: Pod }
  }
}
interface Metadata {
  labels: Record<string, string>
  annotations?: Record<string, string>
}
interface Probe {
  httpGet: object
  periodSeconds: number
  failureThreshold: number
}
interface Pod {
  terminationGracePeriodSeconds: number
  automountServiceAccountToken: boolean
  securityContext: object
  volumes: { name: string }[]
  containers: [Container]
}
interface Container {
  image: string
  envFrom?: object[]
  startupProbe: Probe
  livenessProbe: Probe
  securityContext: object
  ports: object[]
  volumeMounts: { name: string; mountPath: string }[]
  command: string[]
  env: { name: string; value: string }[]
  lifecycle?: { preStop: { sleep: { seconds: number } } }
}

/**
 * What kubernetes-validate says of the objects that are no custom resources: nothing if they are
 * valid.
 */
function faultsOfCore(t: TestContext, manifests: readonly Manifest[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-manifests-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  const core = manifests.filter((manifest) => !isCustom(manifest))
  assert.notEqual(core.length, 0)
  const file = join(folder, 'core.yaml')
  writeFileSync(file, core.map((manifest) => stringify(manifest)).join('---\n'))
  const options = ['--strict', '--quiet', '--kubernetes-version', KUBERNETES]
  const { status, stdout, stderr } = spawnSync('kubernetes-validate', [...options, file], {
    encoding: 'utf8',
  })
  return status === 0 ? '' : `exit ${status}: ${stdout}${stderr}`
}
