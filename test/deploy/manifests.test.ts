import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NODE_FLAGS } from '@sluice/local'
import { type TestContext, test } from 'vitest'
import { stringify } from 'yaml'
import { needs } from '../runner/programs.ts'
import { faultsOfCustom, isCustom } from './crds.ts'
import {
  hasHelm,
  helm,
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

for (const [path, args] of Object.entries(MANIFESTS)) {
  test(`${path} is what the chart makes; if not, run \`pnpm run manifests\``, () => {
    const text = read(path)
    assert.equal(text, withHash(objectsOf(text)))
  })

  test.skipIf(!hasHelm)(`Helm renders ${path} (go install helm.sh/helm/v3/cmd/helm@v3.22.0)`, () => {
    assert.equal(read(path), render(args))
  })

  test(`custom resources in ${path} are valid`, () => {
    assert.deepEqual(parse(read(path)).filter(isCustom).flatMap(faultsOfCustom), [])
  })

  test(`${path} is valid in Kubernetes ${KUBERNETES}`, needs('kubernetes-validate'), (t) => {
    assert.equal(faultsOfCore(t, parse(read(path))), '')
  })
}

test('a misspelt field and a wrong type in a custom resource are found', () => {
  const broken = parse(
    read(EVERYTHING).replace('minReplicaCount:', 'minReplicas:').replace('jobLabel: app', 'jobLabel: 1 #'),
  )
  const faults = broken.filter(isCustom).flatMap(faultsOfCustom)
  assert.match(faults.join('\n'), /additional properties.*minReplicas/)
  assert.match(faults.join('\n'), /\/spec\/jobLabel must be string/)
})

for (const [what, from, to] of [
  ['a misspelt field', 'terminationGracePeriodSeconds', 'terminationGraceSeconds'],
  ['a wrong type', 'minReplicas: 2', 'minReplicas: two'],
  ['a probe without its port', 'httpGet: { path: /livez, port: admin }', 'httpGet: { path: /livez }'],
] as const) {
  test(`${what} in an object of Kubernetes is found`, needs('kubernetes-validate'), (t) => {
    assert.notEqual(faultsOfCore(t, parse(read(EVERYTHING).replace(from, to))), '')
  })
}

test('each pod ends after its preStop and SHUTDOWN_GRACE_SECONDS, and starts with the flags of `start`', () => {
  const deployments = parse(read(EVERYTHING)).filter(({ kind }) => kind === 'Deployment') as unknown as Deployment[]
  const pods = deployments.map(({ spec }) => spec.template.spec)
  const facts = pods.map(({ terminationGracePeriodSeconds: seconds, containers: [container] }) => ({
    seconds,
    sleeps: container.lifecycle?.preStop.sleep.seconds ?? 0,
    grace: Number(container.env.find(({ name }) => name === 'SHUTDOWN_GRACE_SECONDS')?.value),
    command: container.command,
  }))
  assert.equal(facts.length, 3)
  for (const { seconds, sleeps, grace } of facts) assert.equal(seconds, sleeps + grace + 5)
  for (const app of ['api', 'worker']) {
    assert.ok(facts.some(({ command }) => `${command}` === `${['node', ...NODE_FLAGS, `apps/${app}/src/main.ts`]}`))
  }
})

test('pods obey the policy `restricted`, and can write to /tmp alone', () => {
  const manifests = Object.keys(MANIFESTS).flatMap((path) => parse(read(path)))
  const deployments = manifests.filter(({ kind }) => kind === 'Deployment') as unknown as Deployment[]
  assert.equal(deployments.length, 6)
  for (const pod of deployments.map(({ spec }) => spec.template.spec)) {
    assert.equal(pod.automountServiceAccountToken, false)
    assert.partialDeepStrictEqual(pod.securityContext, {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers']) assert.ok(!(field in pod), field)
    for (const { name, ...volume } of pod.volumes)
      assert.match(Object.keys(volume).join(), /^(emptyDir|secret|configMap)$/, name)
    const writable = pod.volumes.filter((volume) => 'emptyDir' in volume).map(({ name }) => name)
    for (const { securityContext, ports, volumeMounts } of pod.containers) {
      assert.deepEqual(securityContext, LEAST_RIGHTS)
      for (const port of ports) assert.ok(!('hostPort' in port), JSON.stringify(port))
      const paths = volumeMounts.filter(({ name }) => writable.includes(name)).map(({ mountPath }) => mountPath)
      assert.deepEqual(paths, ['/tmp'])
    }
  }
})

test('the admin port of every pod is reached by the namespace of the monitoring alone, and workers by no other port', () => {
  for (const path of Object.keys(MANIFESTS)) {
    const policies = parse(read(path)).filter(({ kind }) => kind === 'NetworkPolicy')
    const monitoring = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }
    const ingress = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }
    const http = path === EVERYTHING ? { from: [ingress] } : {}
    assert.deepEqual(
      policies.map(({ spec }) => spec),
      [
        {
          podSelector: {
            matchLabels: { 'app.kubernetes.io/name': 'sluice', 'app.kubernetes.io/instance': 'sluice' },
          },
          policyTypes: ['Ingress'],
          ingress: [
            { ports: [{ port: 'http' }], ...http },
            { ports: [{ port: 'admin' }], from: [monitoring] },
          ],
        },
      ],
    )
  }
})

test.skipIf(!hasHelm)('the chart refuses values that it does not know or that it sets itself', () => {
  helm(['lint', 'deploy/helm/sluice', '--kube-version', KUBERNETES])
  for (const [value, message] of [
    ['workers.replicas=3', /workers/],
    ['worker.replicas=0', /minimum/],
    ['api.settings.SHUTDOWN_GRACE_SECONDS=9', /SHUTDOWN_GRACE_SECONDS/],
    ['settings.REDIS_URL=redis://secret', /REDIS_URL/],
    ['settings.MAX_QUEUE_THREADS=100', /string/],
    ['existingSecret=', /minLength/],
  ] as const) {
    assert.throws(() => render(['--set', value]), message)
  }
})

const LEAST_RIGHTS = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }

interface Deployment {
  spec: { template: { spec: Pod } }
}
interface Pod {
  terminationGracePeriodSeconds: number
  automountServiceAccountToken: boolean
  securityContext: object
  volumes: { name: string }[]
  containers: [Container]
}
interface Container {
  securityContext: object
  ports: object[]
  volumeMounts: { name: string; mountPath: string }[]
  command: string[]
  env: { name: string; value: string }[]
  lifecycle?: { preStop: { sleep: { seconds: number } } }
}

/** What kubernetes-validate says of the objects that are no custom resources: nothing if they are valid. */
function faultsOfCore(t: TestContext, manifests: readonly Manifest[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-manifests-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  const core = manifests.filter((manifest) => !isCustom(manifest))
  assert.notEqual(core.length, 0)
  const file = join(folder, 'core.yaml')
  writeFileSync(file, core.map((manifest) => stringify(manifest)).join('---\n'))
  const options = ['--strict', '--quiet', '--kubernetes-version', KUBERNETES]
  const { status, stdout, stderr } = spawnSync('kubernetes-validate', [...options, file], { encoding: 'utf8' })
  return status === 0 ? '' : `exit ${status}: ${stdout}${stderr}`
}
