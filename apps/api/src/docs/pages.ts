// The pages GET /docs, which shows the API with Swagger UI, and GET /docs/problems, which explains every problem.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { PROBLEMS, type ProblemKind } from '@sluice/contract'
import { ProblemError } from '../request/problem-error.ts'
import type { Answer, Handler } from '../request/request-context.ts'

/** Everything comes from our own origin. The viewer draws its icons with `data:` URLs. */
const PAGE_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const VIEWER_POLICY = `${PAGE_POLICY}; img-src 'self' data:`

/** GET /docs. Its paths are relative, so that it works behind a proxy that adds a prefix. */
export function getDocs(): Handler {
  return async () => {
    const files = ['icon.svg', 'swagger-ui.css', 'swagger-ui-bundle.js', 'start-viewer.js'] as const
    const [icon, style, bundle, start] = await Promise.all(files.map(assetPath))
    const head = `<link rel="icon" href="docs/assets/${icon}">
<link rel="stylesheet" href="docs/assets/${style}">
<script defer src="docs/assets/${bundle}"></script>
<script defer src="docs/assets/${start}"></script>`
    const body = `<main id="viewer"></main>
<noscript>
<p>This viewer needs JavaScript. These do not:</p>
<ul>
<li><a href="docs/problems">docs/problems</a>: every problem, what it means, and what to do</li>
<li><a href="openapi.json">openapi.json</a>: the description of the API (OpenAPI 3.1)</li>
</ul>
</noscript>`
    return pageAnswer('Sluice API', head, body, VIEWER_POLICY)
  }
}

/** GET /docs/problems: a section for each code, which is its id. The `type` of a problem leads here. */
export function getProblemsPage(): Handler {
  return async () => {
    const [icon, style] = await Promise.all([assetPath('icon.svg'), assetPath('page.css')])
    const head = `<link rel="icon" href="assets/${icon}">\n<link rel="stylesheet" href="assets/${style}">`
    return pageAnswer('Problems of the Sluice API', head, PROBLEM_SECTIONS, PAGE_POLICY)
  }
}

const kinds: [code: string, kind: ProblemKind][] = Object.entries(PROBLEMS)

const PROBLEM_SECTIONS = `<main>
<h1>Problems</h1>
<p>Every answer of 400 or more has one of these as its body (<a href="https://www.rfc-editor.org/rfc/rfc9457">RFC 9457</a>).
Its <code>code</code> and its <code>type</code> name the section. <a href="../docs">The API</a></p>
<ul>
${kinds.map(([code, { status }]) => `<li><a href="#${code}"><code>${code}</code></a> ${status}</li>`).join('\n')}
</ul>
${kinds.map(([code, kind]) => problemSection(code, kind)).join('\n')}
</main>`

function problemSection(code: string, { status, title, meaning, remedy }: ProblemKind): string {
  return `<section id="${code}">
<h2>${toHtml(title)}</h2>
<p><code>${code}</code>, HTTP status ${status}</p>
<p>${toHtml(meaning)}</p>
<p><strong>What to do:</strong> ${toHtml(remedy)}</p>
</section>`
}

/** Text with code in backticks as HTML. */
function toHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return escaped.replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

function pageAnswer(title: string, head: string, body: string, policy: string): Answer {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
  }
  return { status: 200, bytes: Buffer.from(html), headers }
}

const SCRIPT = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/**
 * The files of the pages under `/docs` by their names in the path, a closed list. What serves them must not be loaded
 * with their description.
 */
export const ASSETS = {
  'swagger-ui-bundle.js': {
    find: () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
    mediaType: SCRIPT,
  },
  'swagger-ui.css': { find: () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'), mediaType: CSS },
  'start-viewer.js': { find: () => import.meta.resolve('./page/start-viewer.js'), mediaType: SCRIPT },
  'page.css': { find: () => import.meta.resolve('./page/page.css'), mediaType: CSS },
  'icon.svg': { find: () => import.meta.resolve('./page/icon.svg'), mediaType: 'image/svg+xml' },
} as const

type AssetName = keyof typeof ASSETS

interface Asset {
  bytes: Buffer
  gzipped: Buffer
  /** Changes with the content. */
  version: string
}

const compress = promisify(gzip)
const assets = new Map<AssetName, Promise<Asset>>()

/** A file, read once. About 2.5 MB for all of them. */
function readAsset(name: AssetName): Promise<Asset> {
  const reading = assets.get(name) ?? loadAsset(ASSETS[name].find())
  assets.set(name, reading)
  // The process may have been out of file descriptors.
  reading.catch(() => assets.delete(name))
  return reading
}

async function loadAsset(url: string): Promise<Asset> {
  const bytes = await readFile(new URL(url))
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  return { bytes, gzipped: await compress(bytes), version }
}

/** The path of a file, relative to `/docs/assets/`, which changes with its content. */
async function assetPath(name: AssetName): Promise<string> {
  return `${name}?v=${(await readAsset(name)).version}`
}

/** GET /docs/assets/{name}. */
export function getAsset(): Handler {
  return async ({ request }, { name }) => {
    if (!isAsset(name)) throw new ProblemError('route_unknown')
    const { bytes, gzipped } = await readAsset(name)
    const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding']))
    const headers = {
      'content-type': ASSETS[name].mediaType,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      ...(isGzipped && { 'content-encoding': 'gzip' }),
    }
    return { status: 200, bytes: isGzipped ? gzipped : bytes, headers }
  }
}

function isAsset(name: unknown): name is AssetName {
  return typeof name === 'string' && Object.hasOwn(ASSETS, name)
}
