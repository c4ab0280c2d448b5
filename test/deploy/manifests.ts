// The manifests under deploy/kubernetes, and one for tests, which Helm renders from the chart.
// Their first lines have a hash, so that a chart that changed and a manifest that was edited are
// noticed without Helm.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const CHART = 'deploy/helm/sluice'

/** Each manifest, with the arguments of Helm that are its own. */
export const MANIFESTS: Readonly<Record<string, readonly string[]>> = {
  'deploy/kubernetes/sluice.yaml': [],
  'deploy/kubernetes/everything.yaml': ['--values', `${CHART}/ci/everything-values.yaml`],
  'test/deploy/platform.yaml': ['--values', `${CHART}/ci/platform-values.yaml`],
}

/** The lowest version that the chart's kubeVersion allows. */
export const KUBERNETES = '1.30.0'

/** An object of Kubernetes. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string> }
  [field: string]: unknown
}

/** Whether this machine has Helm. Tests that need it are skipped without. */
export const hasHelm = spawnSync('helm', ['version']).error === undefined

/**
 * Runs Helm in the project's folder, and returns its output. @throws if Helm fails, with what it
 * says.
 */
export function helm(args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('helm', args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${stdout}${stderr}`)
  return stdout
}

/**
 * Renders a manifest of `MANIFESTS`, with its first lines. @throws if Helm refuses the chart or the
 * arguments.
 */
export function render(args: readonly string[]): string {
  const options = ['--namespace', 'sluice', '--kube-version', KUBERNETES, '--skip-tests']
  return withHash(helm(['template', 'sluice', CHART, ...options, ...args]))
}

/**
 * The schema only refuses, and `files` is in no manifest: `pnpm run docs` writes both, on machines
 * without Helm.
 */
const NOT_RENDERED = ['values.schema.json', 'files/*']

/**
 * Returns the objects with lines before them that have the hash of the chart and of the objects.
 */
export function withHash(objects: string): string {
  const hash = createHash('sha256')
  for (const path of globSync('**/*.*', { cwd: root + CHART, exclude: NOT_RENDERED }).sort()) {
    hash.update(`${path}\n`).update(readFileSync(`${root}${CHART}/${path}`))
  }
  hash.update(objects)
  return `# Rendered from ${CHART} by \`pnpm run manifests\`: change the chart, not this file.\n# sha256 of both: ${hash.digest('hex')}\n${objects}`
}

/** A manifest without its first lines. */
export function objectsOf(text: string): string {
  return text.replace(/^(# .*\n){2}/, '')
}

/** Parses a manifest, as Kubernetes does, by YAML 1.1. */
export function parse(text: string): Manifest[] {
  return parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS())
}
