// Builds the dashboard: the login, the pages that need one, and Bull Board under `/board`, which
// shows the BullMQ queues, and changes nothing. It reads few jobs at a time, and no payloads, so
// that it can't fill the memory.

import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import { OperationsFullError, OperatorOnlyError, type ViewFor } from '@sluice/operations'
import type { Redis } from '@sluice/process/redis'
import { QueueUnavailableError, readShownJob } from '@sluice/queue'
import type { Job, Queue } from 'bullmq'
import ejs from 'ejs'
import express, {
  type ErrorRequestHandler,
  type Express,
  type RequestHandler,
  type Response,
} from 'express'
import { html } from 'hono/html'
import { findSession, type LoginDeps, loginRoutes, logOut } from './login/login.ts'
import {
  isOperator,
  type Page,
  type PageHandler,
  renderPage,
  type Session,
  timeTag,
  type Visit,
} from './pages/page.ts'
import { acts, pages } from './pages/pages.ts'
import {
  contentSecurityPolicy,
  refuseOtherHosts,
  refuseOtherSites,
  StrangeRequestError,
} from './policy.ts'

interface DashboardDeps extends LoginDeps, BoardDeps, Pick<Visit, 'traceUrl'> {
  viewFor: ViewFor
  /** The host names by which browsers may address the dashboard. */
  hosts: readonly string[]
  /** The address by which browsers reach the dashboard, if the settings name it. */
  url: string | null
  isReady: () => boolean
  /** Returns since when Redis has been unavailable. Returns undefined if it is available. */
  redisUnavailableSince: () => Date | undefined
}

type Locals = { session: Session }
type Middleware = RequestHandler<Record<string, string>, unknown, unknown, unknown, Locals>

/** Builds the app with its pages, `/livez` and `/readyz`. It does not listen yet. */
export function buildDashboard(deps: DashboardDeps): Express {
  const { hosts, url, isReady } = deps
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.use((_request, response, next) => {
    response.set({
      'cache-control': 'no-store',
      'content-security-policy': contentSecurityPolicy({
        style: "'self'",
        form: "'self'",
        base: "'none'",
      }),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      // With `no-referrer`, browsers would send the origin `null` with the dashboard's own forms.
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    next()
  })
  app.get('/livez', (_request, response) => void response.json({ alive: true }))
  app.get(
    '/readyz',
    (_request, response) => void response.status(isReady() ? 200 : 503).json({ ready: isReady() }),
  )
  app.use(refuseOtherHosts(hosts), refuseOtherSites(url))
  app.use(
    '/assets',
    express.static(new URL('./assets', import.meta.url).pathname, {
      index: false,
      redirect: false,
    }),
  )
  app.use((_request, _response, next) => next(isReady() ? undefined : new QueueUnavailableError()))
  app.use(express.urlencoded({ extended: false, limit: '16kb' }))
  app.use(loginRoutes(deps))
  app.use(requireSession(deps), refuseForgedForms)
  app.post('/logout', (request, response) => logOut(request, response, deps))
  app.use('/board', refuseViewers, buildBoard(deps))
  for (const [path, show] of Object.entries(pages)) app.get(path, showPage(show, deps))
  for (const [path, act] of Object.entries(acts)) app.post(path, showPage(act, deps))
  app.use((request, response) => sendPage(request, response, NOT_FOUND))
  app.use(answerError(deps))
  return app
}

const NOT_FOUND: Page = {
  title: 'Nothing here',
  body: html`<p>This address has no page.</p>`,
  status: 404,
}
const FORGED: Page = {
  title: 'Nothing was done',
  body: html`<p class="problem">The form belongs to another session. Load its page again.</p>`,
  status: 403,
}
function redisUnavailable(since: Date | undefined): Page {
  const body = html`<p class="problem" id="redis-unavailable" data-refresh>${since && html`Redis has been unavailable since ${timeTag(since.toISOString())}. `}Redis has the queue and the sessions. This page works again as soon as Redis does.</p>`
  return { title: 'Redis cannot be reached', body, status: 503 }
}
function strange({ message }: StrangeRequestError): Page {
  return { title: 'Request refused', body: html`<p class="problem">${message}</p>`, status: 403 }
}
const OPERATOR_ONLY: Page = {
  title: 'For operators only',
  body: html`<p>A viewer reads ids and reasons, and changes nothing.</p>`,
  status: 403,
}
const TOO_MANY: Page = {
  title: 'Too many operations are open',
  body: html`<p>Wait until some of the <a href="/operations">open ones</a> are completed.</p>`,
  status: 503,
}

/** Sends what `show` returns: a page, a redirect to another page, or NOT_FOUND. */
function showPage(
  show: PageHandler,
  deps: Pick<DashboardDeps, 'viewFor' | 'traceUrl' | 'log'>,
): Middleware {
  const { viewFor, traceUrl, log } = deps
  return async (request, response) => {
    const { params, body, originalUrl } = request
    const { searchParams: query } = new URL(originalUrl, 'http://dashboard')
    const left = new AbortController()
    response.once('close', () => left.abort())
    const { session } = response.locals
    const asked = { ...session, params, query, body, gone: left.signal }
    const view = viewFor(session.visitor)
    const page = (await show({ ...asked, view, traceUrl, log })) ?? NOT_FOUND
    if (typeof page === 'string') return response.redirect(303, page)
    const { shows = await view.readLately().catch(() => undefined) } = page
    await sendPage(request, response, { ...page, shows })
  }
}

async function sendPage({ path }: { path: string }, response: Response, page: Page): Promise<void> {
  response.status(page.status ?? 200).send(await renderPage(page, response.locals.session, path))
}

function requireSession(deps: LoginDeps): Middleware {
  return async (request, response, next) => {
    const session = await findSession(request, deps)
    if (session !== undefined) {
      response.locals.session = session
      return next()
    }
    const { method, originalUrl, headers } = request
    if ((headers['sec-fetch-mode'] ?? 'navigate') === 'navigate') {
      // If the session ended before a form was sent, the login leads back to the form's page.
      const { pathname = '/', search = '' } = URL.parse(headers.referer ?? '') ?? {}
      const to = method === 'GET' ? originalUrl : pathname + search
      return response.redirect(303, `/login?to=${encodeURIComponent(to)}`)
    }
    response.status(401).json({ error: 'log in first' })
  }
}

const refuseForgedForms: Middleware = async (request, response, next) => {
  const { method, body } = request
  if (method === 'GET' || method === 'HEAD' || Object(body).csrf === response.locals.session.csrf)
    return next()
  await sendPage(request, response, FORGED)
}

const refuseViewers: Middleware = (_request, response, next) => {
  next(isOperator(response.locals.session) ? undefined : new OperatorOnlyError())
}

/**
 * Express recognises an error handler by its four parameters. The error is not sent, because it may
 * quote a payload.
 */
function answerError({
  log,
  redisUnavailableSince,
}: Pick<DashboardDeps, 'log' | 'redisUnavailableSince'>): ErrorRequestHandler {
  return async (error, request, response, _next) => {
    if (response.headersSent || response.closed) return void response.destroy()
    if (error instanceof QueueUnavailableError)
      return sendPage(request, response, redisUnavailable(redisUnavailableSince()))
    if (error instanceof StrangeRequestError) return sendPage(request, response, strange(error))
    if (error instanceof OperatorOnlyError) return sendPage(request, response, OPERATOR_ONLY)
    if (error instanceof OperationsFullError) return sendPage(request, response, TOO_MANY)
    const status = Number(error?.status) < 500 ? Number(error.status) : 500
    if (status === 500) log.info({ err: error, path: request.path.slice(0, 200) }, 'page.failed')
    const body = html`<p class="problem">${status === 500 ? 'The log says why.' : 'The request can’t be read.'}</p>`
    await sendPage(request, response, { title: 'The page failed', body, status })
  }
}

/** Bull Board's page has styles in attributes, and a `base` element. */
const BOARD_POLICY = contentSecurityPolicy({
  style: "'self' 'unsafe-inline'",
  form: "'none'",
  base: "'self'",
})

/** Bull Board's page would load a font from another host. */
const FONT_LINK = /<link href="https:[^>]*>/g

interface BoardDeps {
  queues: readonly Queue[]
  redis: Redis
}

function buildBoard({ queues, redis }: BoardDeps): Express {
  const serverAdapter = new ExpressAdapter().setBasePath('/board')
  createBullBoard({
    queues: queues.map((queue) => new ShownQueue(queue, redis)),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Sluice',
        hideDocsLink: true,
        miscLinks: [{ text: 'Back to Sluice', url: '/overview' }],
      },
    },
  })
  const board: Express = serverAdapter.getRouter()
  board.engine('ejs', (path, options, callback) =>
    ejs.renderFile(path, options, (error, page) => callback(error, page?.replace(FONT_LINK, ''))),
  )
  const app = express()
  app.use(({ method }, response, next) => {
    response.set('content-security-policy', BOARD_POLICY)
    if (method === 'GET' || method === 'HEAD') next()
    else response.status(405).json({ error: 'Bull Board changes nothing here.' })
  })
  return app.use(board)
}

/** One request reads at most this number of jobs of each state. */
const JOBS_PER_PAGE = 100

type States = Parameters<BullMQAdapter['getJobs']>[0]

/**
 * A queue as Bull Board sees it, without payloads. The dashboard's own page of a job shows
 * payloads.
 */
class ShownQueue extends BullMQAdapter {
  readonly #queue: Queue
  readonly #redis: Redis

  constructor(queue: Queue, redis: Redis) {
    super(queue, {
      description: 'Accepted requests on their way into MongoDB',
      readOnlyMode: true,
      externalJobUrl: ({ id }) => ({ displayText: 'The job in Sluice', href: `/jobs/${id}` }),
    })
    this.#queue = queue
    this.#redis = redis
  }

  override async getJob(id: string): Promise<Job | undefined> {
    return readShownJob(this.#queue, this.#redis, id)
  }

  override async getJobs(
    states: States,
    start = 0,
    end = Number.POSITIVE_INFINITY,
  ): Promise<Job[]> {
    const jobs: Job[] = []
    // Bull Board asks for the state `paused`, which BullMQ no longer has.
    const known = states.filter((state) => state !== 'paused')
    for (const id of await this.#queue.getRanges(
      known,
      start,
      Math.min(end, start + JOBS_PER_PAGE - 1),
    )) {
      const job = await this.getJob(id)
      if (job !== undefined) jobs.push(job)
    }
    return jobs
  }
}
