// The pages GET /docs, which shows the API with Swagger UI, and GET /docs/problems, which explains every problem.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { PROBLEMS, type ProblemKind } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { ProblemError } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'

/** Everything comes from our own origin. The viewer draws its icons with `data:` URLs. */
const PAGE_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const VIEWER_POLICY = `${PAGE_POLICY}; img-src 'self' data:`

/** GET /docs. Its paths are relative, so that it works behind a proxy that adds a prefix. */
export function getDocs(): Handler {
  return () => pageAnswer(import.meta.resolve('./page/viewer.html'), VIEWER_POLICY)
}

/** GET /docs/problems: a section for each code, with the code as its id. The `type` of a problem leads to a section. */
export function getProblemsPage(): Handler {
  return () => pageAnswer(import.meta.resolve('./page/problems.html'), PAGE_POLICY)
}

/**
 * Redirects to a page, because people try `/` and `/docs/` first.
 *
 * @param target relative, so that it works behind a proxy that adds a prefix.
 */
export function leadTo(target: string): Handler {
  const headers = { 'content-type': 'text/plain; charset=utf-8', location: target }
  return async () => ({ status: 302, bytes: Buffer.from(`See ${target}\n`), headers })
}

const kinds: [code: string, kind: ProblemKind][] = Object.entries(PROBLEMS)

/** Placeholders in a page: `{name}`. */
const PLACES = /\{([\w.-]+)\}/g

/** The values of these placeholders, besides the paths of assets. */
const PARTS: Record<string, string> = {
  list: kinds.map(([code, { status }]) => `<li><a href="#${code}"><code>${code}</code></a> ${status}</li>`).join('\n'),
  sections: kinds.map(([code, kind]) => problemSection(code, kind)).join('\n'),
}

function problemSection(code: string, { status, title, meaning, remedy }: ProblemKind): string {
  return `<section id="${code}">
<h2>${toHtml(title)}</h2>
<p><code>${code}</code>, HTTP status ${status}</p>
<p>${toHtml(meaning)}</p>
<p><strong>What to do:</strong> ${toHtml(remedy)}</p>
</section>`
}

/** Converts a text to HTML. Text in backticks becomes code. */
function toHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return escaped.replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

async function pageAnswer(page: string, policy: string): Promise<Answer> {
  const text = String((await readOnce(page)).bytes)
  const parts = { ...PARTS }
  for (const [, name = ''] of text.matchAll(PLACES)) {
    const asset = ASSETS.get(name)
    if (asset !== undefined) parts[name] = `${name}?v=${(await readOnce(asset.find())).version}`
  }
  const html = text.replaceAll(PLACES, (_, name) => parts[name] ?? '')
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
  }
  return { status: 200, bytes: Buffer.from(html), headers }
}

const JS = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/**
 * The files of the pages under `/docs/assets`, by their names in the path, a closed list. `find` resolves them late:
 * describing the routes must not need the packages that contain the files.
 */
export const ASSETS: ReadonlyMap<string, { find: () => string; mediaType: string }> = new Map([
  ['swagger-ui-bundle.js', { find: () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'), mediaType: JS }],
  ['swagger-ui.css', { find: () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'), mediaType: CSS }],
  ['start-viewer.js', { find: () => import.meta.resolve('./page/start-viewer.js'), mediaType: JS }],
  ['page.css', { find: () => import.meta.resolve('./page/page.css'), mediaType: CSS }],
  ['icon.svg', { find: () => import.meta.resolve('./page/icon.svg'), mediaType: 'image/svg+xml' }],
])

interface ReadFile {
  bytes: Buffer
  gzipped: Buffer
  /** Changes with the content. */
  version: string
}

const files = new Map<string, Promise<ReadFile>>()

/** Reads each file once. All files together take about 2.5 MB. */
function readOnce(url: string): Promise<ReadFile> {
  const reading = files.get(url) ?? read(url)
  files.set(url, reading)
  // Read again after a failure: the process may have been out of file descriptors.
  reading.catch(() => files.delete(url))
  return reading
}

async function read(url: string): Promise<ReadFile> {
  const bytes = await readFile(new URL(url))
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  return { bytes, gzipped: await promisify(gzip)(bytes), version }
}

/**
 * A larger answer to a caller without a key closes its connection. Its bytes count in `openSpace` until the connection
 * is closed.
 */
const LARGE_BYTES = 64 * 1024

function contentAnswer(
  { openSpace }: Pick<ApiDeps, 'openSpace'>,
  { request }: RequestContext,
  { bytes, gzipped }: Pick<ReadFile, 'bytes' | 'gzipped'>,
  headers: Answer['headers'],
): Answer {
  const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding']))
  const content = isGzipped ? gzipped : bytes
  const isLarge = content.length > LARGE_BYTES
  // Reserved until the socket closes: after the response has ended, unread bytes may stay in the system's buffers.
  if (isLarge) openSpace.reserve({ tenant: '', response: request.socket }, content.length)
  const coding = { vary: 'accept-encoding', ...(isGzipped && { 'content-encoding': 'gzip' }) }
  return { status: 200, bytes: content, headers: { ...headers, ...coding, ...(isLarge && { connection: 'close' }) } }
}

/** GET /openapi.json. The document is built and compressed for its first reader. */
export function getDescription(deps: Pick<ApiDeps, 'openSpace'>, describe: () => unknown): Handler {
  let built: Promise<Pick<ReadFile, 'bytes' | 'gzipped'>> | undefined
  async function build() {
    const bytes = Buffer.from(JSON.stringify(describe()))
    return { bytes, gzipped: await promisify(gzip)(bytes) }
  }
  return async (context) => {
    built ??= build()
    return contentAnswer(deps, context, await built, { 'content-type': 'application/json' })
  }
}

/** GET /docs/assets/{name}. */
export function getAsset(deps: Pick<ApiDeps, 'openSpace'>): Handler {
  return async (context, { name }) => {
    const asset = ASSETS.get(String(name))
    if (asset === undefined) throw new ProblemError('route_unknown')
    const headers = {
      'content-type': asset.mediaType,
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    }
    return contentAnswer(deps, context, await readOnce(asset.find()), headers)
  }
}
