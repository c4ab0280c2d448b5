// The login: by a key or by a link that works once. Every page behind it needs a session.
import { hash } from 'node:crypto'
import type { Logger } from '@sluice/ops'
import { SESSION_MS, type Sessions, type Visitor } from '@sluice/queue'
import { type Keyring, keyHash } from '@sluice/store/keys'
import { type Request, type Response, Router } from 'express'
import { html } from 'hono/html'
import { type Html, renderPage } from '../pages/layout.ts'
import { createAttempts } from './attempts.ts'

export interface LoginDeps {
  sessions: Sessions
  keyring: Pick<Keyring, 'find' | 'findById'>
  /** Browsers reach the dashboard by https. */
  isSecure: boolean
  log: Pick<Logger, 'info'>
}

/** A session with its token. */
interface OpenSession {
  token: string
  visitor: Visitor
}

/** The page of the login, and what it sends. */
export function loginRoutes(deps: LoginDeps): Router {
  const { sessions, log } = deps
  const mayTry = createAttempts()
  const router = Router()

  router.get('/login', async ({ query }, response) => {
    const page = typeof query.link === 'string' ? linkForm(query.link, query.to) : keyForm(query.to)
    response.send(await renderPage({ title: 'Log in', body: page }))
  })

  router.post('/login', async (request, response) => {
    const { key, link, to } = request.body ?? {}
    const found = mayTry(request.socket.remoteAddress ?? '')
      ? await visitorOf(deps, { key, link })
      : { status: 429, refusal: 'Too many logins were tried from this address. Wait a minute.' }
    if ('refusal' in found) {
      log.info({ status: found.status }, 'login.refused')
      const body = html`<p class="problem" role="alert">${found.refusal}</p>${keyForm(to)}`
      return void response.status(found.status).send(await renderPage({ title: 'Log in', body }))
    }
    // A session that the browser had before ends, so nobody can log a person in under an id that is known.
    const before = tokenIn(request, deps)
    if (before !== undefined) await sessions.close(before)
    const token = await sessions.open(found.visitor)
    const { name, attributes } = cookieOf(deps)
    response.cookie(name, token, { ...attributes, maxAge: SESSION_MS })
    const { role, by, keyId } = found.visitor
    log.info({ role, by, how: keyId === undefined ? 'link' : 'key' }, 'session.opened')
    response.redirect(303, ownPath(to))
  })
  return router
}

/** Ends a session. */
export async function logOut(request: Request, response: Response, deps: LoginDeps): Promise<void> {
  const token = tokenIn(request, deps)
  if (token !== undefined) await deps.sessions.close(token)
  const { name, attributes } = cookieOf(deps)
  response.clearCookie(name, attributes).redirect(303, '/login')
}

/**
 * Finds the session of a request. A session ends when its key is revoked or expires, which is seen within five seconds; while
 * MongoDB is away, once it is back.
 */
export async function findSession(request: Request, deps: LoginDeps): Promise<OpenSession | undefined> {
  const token = tokenIn(request, deps)
  if (token === undefined) return undefined
  // Other requests are sent by pages that refresh themselves.
  const isVisit = (request.headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
  const visitor = await deps.sessions.find(token, isVisit)
  if (visitor?.keyId === undefined) return visitor && { token, visitor }
  const { outcome } = await deps.keyring.findById(visitor.keyId)
  if (outcome !== 'unknown') return { token, visitor }
  await deps.sessions.close(token)
  deps.log.info({ role: visitor.role, by: visitor.by }, 'session.revoked')
  return undefined
}

/** The token against forged requests. It reveals nothing of the session's token. */
export function csrfOf(token: string): string {
  return hash('sha256', `csrf ${token}`)
}

type Found = { visitor: Visitor } | { status: number; refusal: string }

async function visitorOf({ sessions, keyring }: LoginDeps, sent: { key?: unknown; link?: unknown }): Promise<Found> {
  if (typeof sent.link === 'string') {
    const visitor = await sessions.useLink(sent.link)
    if (visitor !== undefined) return { visitor }
    return {
      status: 403,
      refusal: 'This link was used, or is older than ten minutes. `sluice login` prints another one.',
    }
  }
  const key = String(sent.key ?? '').trim()
  const check = await keyring.find(key)
  if (check.outcome === 'unavailable')
    return {
      status: 503,
      refusal: 'MongoDB is away, so no key can be checked. `sluice login` prints a link that needs Redis only.',
    }
  if (check.outcome === 'unknown') return { status: 403, refusal: 'This key is unknown, revoked or expired.' }
  if (check.role === 'importer')
    return { status: 403, refusal: 'This is the key of an importer. Use the key of an operator or a viewer.' }
  return { visitor: { role: check.role, by: check.keyId, keyId: keyHash(key) } }
}

function keyForm(to: unknown): Html {
  return html`<form class="panel" method="post" action="/login">
<input type="hidden" name="to" value="${ownPath(to)}">
<input name="username" autocomplete="username" value="sluice" hidden>
<label for="key">Key of an operator or a viewer</label>
<input id="key" name="key" type="password" required autocomplete="current-password" autofocus>
<button>Log in</button>
<p class="note">Without a key: <code>sluice login</code> prints a link that works once. It needs Redis only.</p>
</form>`
}

/** A program that looks at a link, such as a chat, must not use it up: only the button does. */
function linkForm(link: string, to: unknown): Html {
  return html`<form class="panel" method="post" action="/login">
<input type="hidden" name="to" value="${ownPath(to)}"><input type="hidden" name="link" value="${link}">
<p>This link logs you in once.</p>
<button autofocus>Log in</button>
</form>`
}

/** Where to go after the login: a path of the dashboard, so that a link of another site leads nowhere else. */
function ownPath(to: unknown): string {
  const path = typeof to === 'string' ? to : ''
  const { origin, pathname, search } = URL.parse(path, 'http://here') ?? new URL('http://here')
  return path.startsWith('/') && origin === 'http://here' ? pathname.replace(/^\/+/, '/') + search : '/'
}

/** A name with this prefix can't be set by another host or over http (RFC 6265bis, section 4.1.3.2). */
function cookieOf({ isSecure }: Pick<LoginDeps, 'isSecure'>) {
  const attributes = { httpOnly: true, sameSite: 'lax', secure: isSecure, path: '/' } as const
  return { name: isSecure ? '__Host-sluice' : 'sluice', attributes }
}

function tokenIn({ headers }: Request, deps: Pick<LoginDeps, 'isSecure'>): string | undefined {
  const { name } = cookieOf(deps)
  const cookies = (headers.cookie ?? '').split(';').map((cookie) => cookie.trim().split('='))
  return cookies.find(([key]) => key === name)?.[1]
}
