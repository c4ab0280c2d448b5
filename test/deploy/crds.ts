// Validates custom resources by the schemas of their definitions, which `pnpm run manifests` reads
// out of Go modules.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import type { Manifest } from './manifests.ts'

interface Crd {
  kind: string
  servedVersion: string
  module: string
  version: string
  /** The definition in the module. */
  path: string
}

/** The versions are the oldest that operators may use. */
export const CRDS: readonly Crd[] = [
  {
    kind: 'ScaledObject',
    servedVersion: 'v1alpha1',
    module: 'github.com/kedacore/keda/v2',
    version: 'v2.18.0',
    path: 'config/crd/bases/keda.sh_scaledobjects.yaml',
  },
  {
    kind: 'ServiceMonitor',
    servedVersion: 'v1',
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    path: 'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  },
  {
    kind: 'PrometheusRule',
    servedVersion: 'v1',
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    path: 'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  },
]

export const crdFile = ({ kind }: Crd) =>
  fileURLToPath(new URL(`crds/${kind}.json`, import.meta.url))

const crdOf = ({ kind }: Manifest) => CRDS.find((crd) => crd.kind === kind)

/** Whether the object is a custom resource, which no validator of Kubernetes itself knows. */
export const isCustom = (manifest: Manifest) => crdOf(manifest) !== undefined

/**
 * Returns the faults of a custom resource, an unknown field included. @throws if its kind is none
 * of `CRDS`.
 */
export function faultsOfCustom(manifest: Manifest): string[] {
  const crd = crdOf(manifest)
  if (crd === undefined) throw new Error(`no schema of ${manifest.kind}`)
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(closed(JSON.parse(readFileSync(crdFile(crd), 'utf8'))))
  validate(manifest)
  return (validate.errors ?? []).map(
    (error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`,
  )
}

/** Kubernetes drops fields that a schema does not know. Here they are faults. */
function closed(schema: object): object {
  return JSON.parse(JSON.stringify(schema), (key, value) => {
    // A flag of Go's patterns.
    if (key === 'pattern' && typeof value === 'string') return value.replace('(?i)', '')
    const isClosed = value?.type === 'object' && 'properties' in value
    return isClosed ? { additionalProperties: false, ...value } : value
  })
}
