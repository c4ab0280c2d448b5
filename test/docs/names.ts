import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SECRETS } from '@sluice/process'
import { parse } from 'yaml'

// Finds the names in a document that do not exist: file paths, links, tests, settings, metrics, log
// events, codes, Redis keys, functions and fields.

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What git ignores. Not asked of git itself, which a copy of the repository can do without. */
const IGNORED = new Set(['.git', 'node_modules', '.sluice', 'coverage', 'dist'])

/** The paths of all files. */
export const files = filesIn('')

function filesIn(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true }).filter(
    ({ name }) => !IGNORED.has(name),
  )
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
}

const isProduct = (path: string) =>
  /^(apps|packages)\/.*\.(ts|lua)$/.test(path) && !/\.test\.ts$/.test(path)
const product = readAll(files.filter(isProduct))
const tools = readAll(
  files.filter((path) => /^(bench|test)\/.*\.ts$/.test(path) && !path.startsWith('test/docs/')),
)

function readAll(paths: readonly string[]): string {
  return paths.map((path) => readFileSync(join(root, path), 'utf8')).join('\n')
}

/** Reads a document by its path in the repository. */
export const readDocument = (path: string) => readFileSync(join(root, path), 'utf8')

/** All documents except the changelog, which names what is gone. */
export const documents = files.filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md')

/** Names of other programs, and names of examples, that look like ours. */
const FOREIGN = new Set([
  ...[
    'INFO',
    'SIGTERM',
    'TRANSCRIBED',
    'queue.add',
    'appendfsync',
    'used_memory',
    'NODE_EXTRA_CA_CERTS',
  ],
  ...['process_cpu_seconds_total', 'process_resident_memory_bytes'],
  ...['failoverDetector', 'publishConfig', 'someName'],
])

interface Kind {
  /** What the whole text between backticks looks like. */
  pattern: RegExp
  exists: (name: string) => boolean
}

/** The first kind whose pattern matches decides. */
const KINDS: Kind[] = [
  { pattern: /^(?!\/)[\w./-]+\.(ts|lua|md|json|ya?ml|c?js)$/, exists: isFile },
  { pattern: /^(apps|packages|test|bench|docs)(\/[\w.-]+)*\/?$/, exists: isFolder },
  { pattern: /^[A-Z][A-Z\d]*(_[A-Z\d]+)*$/, exists: isSetting },
  { pattern: /^sluice_\w+(\{.*\})?$/, exists: isMetric },
  {
    pattern: /^(?!(meta|quotes|source)\.)[a-z]+\.[a-z_]+$/,
    exists: (name) => isInProduct(name) || isChartValue(name),
  },
  { pattern: /^[a-z]+(_[a-z]+)+$/, exists: isInProduct },
  {
    pattern: /^[a-z]+[A-Z][A-Za-z]*$/,
    exists: (name) => isInCode(name) || isChartValue(name),
  },
  { pattern: /^[a-z]+:\{\w+\}(:[a-z]+)?$/, exists: isRedisKey },
]

/** Documents may leave out `src`: `api/listen.ts` is `apps/api/src/listen.ts`. */
function isFile(name: string): boolean {
  const endsSo = (path: string) => path === name || path.endsWith(`/${name}`)
  return files.some((path) => endsSo(path) || endsSo(path.replace('/src/', '/')))
}

function isFolder(name: string): boolean {
  return files.some((path) => path.startsWith(`${name.replace(/\/$/, '')}/`))
}

function isSetting(name: string): boolean {
  if (SECRETS.some((secret) => name === `${secret}_FILE`)) return true
  return product.includes(`'${name}'`) || new RegExp(`\\benv\\.${name}\\b`).test(tools)
}

const chartValues: unknown = parse(readDocument('deploy/helm/sluice/values.yaml'))

function isChartValue(name: string): boolean {
  return name.split('.').reduce((value, part) => Object(value)[part], chartValues) !== undefined
}

function isMetric(name: string): boolean {
  return product.includes(`name: '${name.replace(/\{.*/, '')}'`)
}

/** A function, a type's field or another name of the code: a document may not keep an old one. */
function isInCode(name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(`${product}${tools}`)
}

function isInProduct(name: string): boolean {
  if (SECRETS.some((secret) => name === `${secret}_FILE`)) return true
  return product.includes(`'${name}'`) || product.includes(` ${name}: {`)
}

function isRedisKey(name: string): boolean {
  const [begin = '', end = ''] = name.split(/\{\w+\}/)
  return new RegExp(`['}]${begin}(?:'|\\$)`).test(product) && product.includes(`${end}`)
}

/** The names between backticks that a document mentions and that do not exist. */
export function unknownNames(document: string): string[] {
  const prose = document.replaceAll(/^```.*?^```/gms, '')
  const names = Array.from(prose.matchAll(/`([^`\n]+)`/g), ([, name = '']) => name).filter(
    (name) => !FOREIGN.has(name),
  )
  return names.filter(
    (name) => KINDS.find(({ pattern }) => pattern.test(name))?.exists(name) === false,
  )
}

/** The relative links of a document that lead to no file, or to no heading of it. */
export function deadLinks(path: string, document: string): string[] {
  const links = Array.from(document.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)
  return links.filter((link) => !/^https?:/.test(link) && !leadsSomewhere(path, link))
}

const tests = files.filter((path) => path.endsWith('.test.ts'))

/** The commands of a document that name a test which they don't run. `path/of/a` is an example. */
export function deadTests(document: string): string[] {
  const commands = document.matchAll(/pnpm@12 test(:full)?((?: (?!path\/of\/)\w[\w./-]*)+)/g)
  return Array.from(commands).flatMap(([command, full, names = '']) => {
    const run = tests.filter((path) => full !== undefined || !path.endsWith('.full.test.ts'))
    const isDead = (name: string) => !run.some((path) => path.includes(name))
    return names.trim().split(' ').some(isDead) ? [command] : []
  })
}

/** The tables of a document that begin with their line of dashes, which GitHub shows as text. */
export function headlessTables(document: string): string[] {
  const lines = document.replaceAll(/^```.*?^```/gms, '').split('\n')
  return lines.filter(
    (line, at) => /^\s*\|[\s:|-]*-[\s:|-]*$/.test(line) && !/^\s*\|.*\w/.test(lines[at - 1] ?? ''),
  )
}

function leadsSomewhere(from: string, link: string): boolean {
  const [to = '', anchor] = link.split('#')
  const path = to === '' ? from : normalize(join(dirname(from), to)).replace(/\/$/, '')
  if (!files.includes(path)) return anchor === undefined && isFolder(path)
  return anchor === undefined || headingsOf(readDocument(path)).includes(anchor)
}

function headingsOf(document: string): string[] {
  return Array.from(document.matchAll(/^#+ (.*)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}
