// The pages GET /docs, which shows the API with Swagger UI, and GET /docs/problems, which explains
// every problem.
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { PROBLEMS, type ProblemKind } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { ProblemError } from '../request/problem-error.ts'
import type { Answer, Handler } from '../request/request-context.ts'

type PageDeps = Pick<ApiDeps, 'publicBudget'>

/**
 * A page, or a file of a page. Its URL is resolved only by `load`, because describing the routes
 * must not need the packages that contain the files.
 */
const file = (mediaType: string, find: () => string) => ({
  mediaType,
  load: () => readFile(new URL(find())),
})

const HTML = 'text/html; charset=utf-8'
const JS = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/** The files under `/docs/assets`. No others are served. */
export const ASSETS: ReadonlyMap<string, ReturnType<typeof file>> = new Map([
  [
    'swagger-ui-bundle.js',
    file(JS, () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js')),
  ],
  ['swagger-ui.css', file(CSS, () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'))],
  ['start-viewer.js', file(JS, () => import.meta.resolve('./page/start-viewer.js'))],
  ['page.css', file(CSS, () => import.meta.resolve('./page/page.css'))],
  ['icon.svg', file('image/svg+xml', () => import.meta.resolve('./page/icon.svg'))],
])

const HEADERS = {
  'cache-control': 'max-age=3600',
  // Everything comes from our own origin. The viewer draws its icons with `data:` URLs.
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

const serveFile = (deps: PageDeps, { mediaType, load }: ReturnType<typeof file>) =>
  serve(deps, load, { ...HEADERS, 'content-type': mediaType })

/**
 * GET /docs. The paths in the page are relative, so that it works behind a proxy that adds a
 * prefix.
 */
export const getDocs = (deps: PageDeps): Handler =>
  serveFile(
    deps,
    file(HTML, () => import.meta.resolve('./page/viewer.html')),
  )

/**
 * GET /docs/problems: a section for each problem code. The section's id is the code, to which the
 * `type` of a problem points.
 */
export function getProblemsPage(deps: PageDeps): Handler {
  const { mediaType, load } = file(HTML, () => import.meta.resolve('./page/problems.html'))
  const kinds: [code: string, kind: ProblemKind][] = Object.entries(PROBLEMS)
  const links = kinds.map(
    ([code, { status }]) => `<li><a href="#${code}"><code>${code}</code></a> ${status}</li>`,
  )
  const sections = kinds.map(([code, kind]) => problemSection(code, kind))
  const fill = (page: Buffer) =>
    String(page)
      .replace('{links}', links.join('\n'))
      .replace('{sections}', () => sections.join('\n'))
  return serveFile(deps, { mediaType, load: async () => Buffer.from(fill(await load())) })
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

/** GET /docs/assets/{name}. */
export function getAsset(deps: PageDeps): Handler {
  const handlers = new Map(Array.from(ASSETS, ([name, asset]) => [name, serveFile(deps, asset)]))
  return (context, params) => {
    const handler = handlers.get(String(params.name))
    if (handler === undefined) throw new ProblemError('route_unknown')
    return handler(context, params)
  }
}

/** GET /openapi.json. */
export function getDescription(describe: (limits: ApiDeps['settings']) => unknown) {
  return ({ settings, ...deps }: PageDeps & Pick<ApiDeps, 'settings'>): Handler =>
    serve(deps, async () => Buffer.from(JSON.stringify(describe(settings))), {
      'content-type': 'application/json',
    })
}

/**
 * Redirects to a page, because people try `/` and `/docs/` first.
 * @param target a relative path, like the paths in the pages.
 */
export function redirectTo(target: string): Handler {
  const headers = { 'content-type': 'text/plain; charset=utf-8', location: target }
  return async () => ({ status: 302, content: `See ${target}\n`, headers })
}

/**
 * If an answer to a caller without a key is larger, it closes its connection, and counts in
 * `publicBudget` until then.
 */
const LARGE_BYTES = 64 * 1024

/** Serves bytes, which are loaded and compressed when the first reader asks for them. */
function serve(
  { publicBudget }: PageDeps,
  load: () => Promise<Buffer>,
  headers: Answer['headers'],
): Handler {
  let loaded: Promise<{ bytes: Buffer; gzipped: Buffer }> | undefined
  const compress = async (bytes: Buffer) => ({ bytes, gzipped: await promisify(gzip)(bytes) })
  return async ({ request }) => {
    loaded ??= load().then(compress)
    // After a failure, load again: the process may have been out of file descriptors.
    loaded.catch(() => (loaded = undefined))
    const { bytes, gzipped } = await loaded
    const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding']))
    const content = isGzipped ? gzipped : bytes
    const isLarge = content.length > LARGE_BYTES
    // Reserved until the socket closes, because the system's buffers may still have unread bytes
    // when the response has ended.
    if (isLarge) publicBudget.reserve({ tenant: '', response: request.socket }, content.length)
    const coding = { vary: 'accept-encoding', ...(isGzipped && { 'content-encoding': 'gzip' }) }
    return {
      status: 200,
      content,
      headers: { ...headers, ...coding, ...(isLarge && { connection: 'close' }) },
    }
  }
}
