// The login, by a key, by a link that works once, or by an identity provider. Every other page
// needs a session.
import { hash } from 'node:crypto'
import { isWellFormedKey, type Keyring, keyHash } from '@sluice/credentials/keys'
import {
  isWellFormedLink,
  SESSION_MS,
  type Sessions,
  type Visitor,
} from '@sluice/credentials/sessions'
import type { Logger } from '@sluice/process'
import { type Request, type Response, Router } from 'express'
import { html } from 'hono/html'
import { parse } from 'hono/utils/cookie'
import { type Html, renderPage, type Session, withCode } from '../pages/page.ts'
import { type LoginRefusal, type Oidc, PENDING_MS, refused } from './oidc.ts'

export interface LoginDeps {
  sessions: Sessions
  keyring: Pick<Keyring, 'find' | 'findById'>
  /** Absent if the settings name no identity provider. */
  oidc?: Oidc | undefined
  /** Whether browsers reach the dashboard by https. */
  isSecure: boolean
  log: Pick<Logger, 'info'>
}

type Sent = Pick<Request, 'headers'>

/**
 * An address may make at most MOST_ATTEMPTS attempts in WINDOW_MS. Keys and links can't be guessed
 * anyway, but the bound protects Redis, MongoDB and the identity provider. A malformed key or link
 * reaches none of them, so it does not count, and other people with the same address can still log
 * in.
 */
const MOST_ATTEMPTS = 10
const WINDOW_MS = 60_000
/** Above this number of addresses, a new address must wait for the next window. */
const MAX_ADDRESSES = 10_000

/** Makes a function that counts an attempt, and returns whether the address may make it. */
export function createAttemptLimit(): (address: string) => boolean {
  const attempts = new Map<string, number>()
  let since = performance.now()
  return (address) => {
    if (performance.now() - since >= WINDOW_MS) {
      attempts.clear()
      since = performance.now()
    }
    const made = attempts.get(address) ?? 0
    if (made >= MOST_ATTEMPTS || (made === 0 && attempts.size >= MAX_ADDRESSES)) return false
    attempts.set(address, made + 1)
    return true
  }
}

/** The routes of the login: its page, its form, and the login by an identity provider. */
export function loginRoutes(deps: LoginDeps): Router {
  const { oidc } = deps
  const mayTry = createAttemptLimit()
  const router = Router()

  async function attempt<Result>(
    { socket }: Request,
    find: () => Promise<Result>,
    counts = true,
  ): Promise<Result | LoginRefusal> {
    if (!counts || mayTry(socket.remoteAddress ?? '')) return find()
    return refused(429, 'Too many logins were tried from this address. Wait a minute.')
  }

  router.get('/login', async ({ query }, response) => {
    const page =
      typeof query.link === 'string' ? linkForm(query.link, query.to) : keyForm(deps, query.to)
    response.send(await renderPage({ title: 'Log in', body: page }))
  })
  router.post('/login', async (request, response) => {
    const { key, link, to } = request.body ?? {}
    const isWellFormed =
      typeof link === 'string' ? isWellFormedLink(link) : isWellFormedKey(keyIn(key))
    const found = await attempt(request, () => findVisitor(deps, { key, link }), isWellFormed)
    if ('refusal' in found) return refuse(response, found, deps, to)
    await logIn(request, response, found, deps, to)
  })
  if (oidc === undefined) return router

  const { name, attributes } = cookieOf(deps, 'sluice-oidc')
  router.get('/login/oidc', async (request, response) => {
    // This doesn't count as an attempt, because any site may link to it. A callback that belongs to
    // no login of this browser doesn't count, either.
    const begun = await oidc.begin(ownPath(request.query.to))
    if ('refusal' in begun) return refuse(response, begun, deps, request.query.to)
    response
      .cookie(name, begun.cookie, { ...attributes, maxAge: PENDING_MS })
      .redirect(303, begun.url)
  })
  router.get('/login/oidc/callback', async (request, response) => {
    const { search } = new URL(request.originalUrl, 'http://dashboard')
    const cookie = cookieIn(request, name)
    const found = await attempt(
      request,
      () => oidc.finish(search, cookie),
      oidc.isPending(search, cookie),
    )
    response.clearCookie(name, attributes)
    if ('refusal' in found) return refuse(response, found, deps)
    await logIn(request, response, found, deps, found.to)
  })
  return router
}

async function refuse(
  response: Response,
  refused: LoginRefusal,
  deps: LoginDeps,
  to?: unknown,
): Promise<void> {
  const { status, refusal, reason } = refused
  deps.log.info({ status, reason }, 'login.refused')
  const body = html`<p class="problem" role="alert">${withCode(refusal)}</p>${keyForm(deps, to)}`
  response.status(status).send(await renderPage({ title: 'Log in', body }))
}

interface KnownPerson {
  visitor: Visitor
  /** The id that the person has at the identity provider. It never changes. */
  subject?: string
}

/** Opens a session, and redirects to the page `to`. */
async function logIn(
  request: Request,
  response: Response,
  found: KnownPerson,
  deps: LoginDeps,
  to: unknown,
): Promise<void> {
  const { visitor, subject } = found
  // End the browser's earlier session, because somebody else may know its token.
  const before = tokenIn(request, deps)
  if (before !== undefined) await deps.sessions.close(before)
  const token = await deps.sessions.open(visitor)
  const { name, attributes } = cookieOf(deps)
  response.cookie(name, token, { ...attributes, maxAge: SESSION_MS })
  const { role, by, keyId } = visitor
  const how = subject !== undefined ? 'oidc' : keyId === undefined ? 'link' : 'key'
  deps.log.info({ role, by, how, subject }, 'session.opened')
  response.redirect(303, ownPath(to))
}

export async function logOut(request: Request, response: Response, deps: LoginDeps): Promise<void> {
  const token = tokenIn(request, deps)
  if (token !== undefined) await deps.sessions.close(token)
  const { name, attributes } = cookieOf(deps)
  response.clearCookie(name, attributes).redirect(303, '/login')
}

/**
 * Finds the session of a request. If the session's key is revoked or expires, the session ends
 * within five seconds. While MongoDB is unavailable, the session continues.
 */
export async function findSession(request: Sent, deps: LoginDeps): Promise<Session | undefined> {
  const token = tokenIn(request, deps)
  if (token === undefined) return undefined
  // Only a navigation is a visit, which extends an idle session. Pages that refresh themselves must
  // not extend it.
  const isVisit = (request.headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
  const visitor = await deps.sessions.find(token, isVisit)
  if (visitor === undefined) return undefined
  // A hash, because the token against forged requests must not reveal the session's token.
  const session = { visitor, csrf: hash('sha256', `csrf ${token}`) }
  if (visitor.keyId === undefined) return session
  const { outcome } = await deps.keyring.findById(visitor.keyId)
  if (outcome !== 'unknown') return session
  await deps.sessions.close(token)
  deps.log.info({ role: visitor.role, by: visitor.by }, 'session.revoked')
  return undefined
}

function keyIn(sent: unknown): string {
  return String(sent ?? '').trim()
}

async function findVisitor(
  { sessions, keyring }: LoginDeps,
  sent: { key?: unknown; link?: unknown },
): Promise<KnownPerson | LoginRefusal> {
  if (typeof sent.link === 'string') {
    const visitor = await sessions.useLink(sent.link)
    if (visitor !== undefined) return { visitor }
    return refused(
      403,
      'This link was used, or is older than ten minutes. `sluice login` prints another one.',
    )
  }
  const key = keyIn(sent.key)
  const check = await keyring.find(key)
  if (check.outcome === 'unavailable')
    return refused(
      503,
      'MongoDB is unavailable, so no key can be checked. `sluice login` prints a link that needs Redis only.',
    )
  if (check.outcome === 'unknown')
    return refused(
      403,
      'This key is unknown, revoked or expired.',
      check.keyId && `${check.why} key ${check.keyId}`,
    )
  if (check.role === 'importer')
    return refused(403, 'This is the key of an importer. Use the key of an operator or a viewer.')
  return { visitor: { role: check.role, by: check.keyId, keyId: keyHash(key) } }
}

function keyForm({ oidc }: Pick<LoginDeps, 'oidc'>, to: unknown): Html {
  const byOidc = `/login/oidc?to=${encodeURIComponent(ownPath(to))}`
  return html`${oidc && html`<p><a class="button" href="${byOidc}">Log in with ${oidc.name}</a></p>`}
<form class="panel" method="post" action="/login">
<input type="hidden" name="to" value="${ownPath(to)}">
<input name="username" autocomplete="username" value="sluice" hidden>
<label for="key">Key of an operator or a viewer</label>
<input id="key" name="key" type="password" required autocomplete="current-password" autofocus>
<button>Log in</button>
<p class="note">Without a key: <code>sluice login</code> prints a link that works once. It needs Redis only.</p>
</form>`
}

/**
 * Shows a button that uses up the link. Opening the link does not, because programs such as chats
 * open links to preview them.
 */
function linkForm(link: string, to: unknown): Html {
  return html`<form class="panel" method="post" action="/login">
<input type="hidden" name="to" value="${ownPath(to)}"><input type="hidden" name="link" value="${link}">
<p>This link logs you in once.</p>
<button autofocus>Log in</button>
</form>`
}

/**
 * Returns the path to go to after the login. It is always a path of the dashboard, even if another
 * site has made the link.
 */
function ownPath(to: unknown): string {
  const path = typeof to === 'string' ? to : ''
  const { origin, pathname, search } = URL.parse(path, 'http://here') ?? new URL('http://here')
  return path.startsWith('/') && origin === 'http://here'
    ? pathname.replace(/^\/+/, '/') + search
    : '/'
}

/**
 * Names a cookie. If the name begins with `__Host-`, the cookie can't be set by another host or
 * over http (RFC 6265bis, section 4.1.3.2).
 */
function cookieOf({ isSecure }: Pick<LoginDeps, 'isSecure'>, name = 'sluice') {
  const attributes = { httpOnly: true, sameSite: 'lax', secure: isSecure, path: '/' } as const
  return { name: isSecure ? `__Host-${name}` : name, attributes }
}

function tokenIn(request: Sent, deps: Pick<LoginDeps, 'isSecure'>): string | undefined {
  return cookieIn(request, cookieOf(deps).name)
}

function cookieIn({ headers }: Sent, name: string): string | undefined {
  return parse(headers.cookie ?? '', name)[name]
}
