// Describes the routes that need no key for `/openapi.json`, each by its method and path.
import { LimitsSchema, LivenessSchema, ReadinessSchema } from '@sluice/contract'
import { ASSETS } from './asset-files.ts'
import { json, type RouteDescription } from './route-description.ts'

/** The media type of the pages. */
const HTML = 'text/html; charset=utf-8'

const READY = { ready: true, checks: { process: { ok: true }, redis: { ok: true }, replies: { ok: true } } }
const NOT_READY = { ready: false, checks: { redis: { ok: false, reason: 'not connected, or silent' } } }
const LIMITS = {
  limits: { title: { value: 2_000, unit: 'characters', description: "Length of a source's title." } },
  quota: { burstQuotes: { value: 600_000, unit: 'quotes', description: 'How many quotes one key may post at once.' } },
  queue: { queueThreads: { value: 200_000, unit: 'threads', description: 'How many threads the queue accepts.' } },
  waitSeconds: { value: 30, unit: 'seconds', description: 'The longest that a caller waits for its answer.' },
}

const FILE = { schema: { type: 'string' }, examples: { file: { summary: 'Its text', value: '…' } } }

/** The routes that need no key. */
export const OPEN_ROUTES: Readonly<Record<string, RouteDescription>> = {
  'GET /limits': {
    id: 'getLimits',
    access: 'open',
    summary: 'Every bound that a request can meet',
    answers: { 200: { description: 'The limits in force.', content: json(LimitsSchema, LIMITS) } },
  },
  'GET /livez': {
    id: 'getLiveness',
    access: 'open',
    summary: 'Whether the process is alive',
    answers: { 200: { description: 'It is.', content: json(LivenessSchema, { alive: true }) } },
  },
  'GET /readyz': {
    id: 'getReadiness',
    access: 'open',
    summary: 'Whether the process can accept requests',
    answers: {
      200: { description: 'It can.', content: json(ReadinessSchema, READY) },
      503: { description: 'It can not.', headers: ['Retry-After'], content: json(ReadinessSchema, NOT_READY) },
    },
  },
  'GET /openapi.json': {
    id: 'getDescription',
    access: 'open',
    summary: 'This description',
    answers: {
      200: { description: 'The description of the API.', content: json({ type: 'object' }, { openapi: '3.1.1' }) },
    },
  },
  'GET /docs': page('getDocs', 'A page to read and try the API'),
  'GET /docs/problems': page('getProblems', 'A page that explains every problem'),
  'GET /docs/assets/{name}': {
    id: 'getAsset',
    access: 'open',
    summary: 'A file of these pages',
    parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string', examples: ['page.css'] } }],
    answers: {
      200: {
        description: 'The file. Its address changes with its content, so it may be kept for a year.',
        headers: ['Cache-Control', 'Content-Encoding', 'Vary', 'X-Content-Type-Options'],
        content: Object.fromEntries(Object.values(ASSETS).map(({ mediaType }) => [mediaType, FILE])),
      },
    },
  },
}

function page(id: string, summary: string): RouteDescription {
  const example = { summary: 'The page', value: '<!doctype html><html lang="en">…</html>' }
  const content = { [HTML]: { schema: { type: 'string' }, examples: { page: example } } }
  const headers = ['Cache-Control', 'Content-Security-Policy', 'X-Content-Type-Options'] as const
  return { id, access: 'open', summary, answers: { 200: { description: 'The page.', headers, content } } }
}
