// The sessions of people who look at the queue, and the links with which they log in. Redis has
// only hashes of the tokens, so nobody who reads Redis can log in with them.
import { hash, randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { openScript } from '@sluice/process/redis'
import { orUnavailable, type QueueKeys, queueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'

/**
 * A person, as described by the key, the link or the identity provider with which the person logged
 * in.
 */
export interface Visitor {
  role: 'operator' | 'viewer'
  /**
   * The beginning of the key's id, the user who created the link, or the person's name at the
   * identity provider.
   */
  by: string
  /** The whole id of the key. Absent if the person logged in without a key. */
  keyId?: string
}

interface StoredSession extends Visitor {
  /** In ms since 1970. */
  endsAt: number
}

export type Sessions = ReturnType<typeof createSessions>

const MINUTE_MS = 60_000
/** A session ends after this time. It ends earlier if nobody visits a page for `IDLE_MS`. */
export const SESSION_MS = 8 * 60 * MINUTE_MS
const IDLE_MS = 30 * MINUTE_MS
const LINK_MS = 10 * MINUTE_MS

const TOKEN_BYTES = 32
const TOKEN = /^[\w-]{43}$/

/** Returns whether a text can be the token of a link. */
export function isWellFormedLink(text: string): boolean {
  return TOKEN.test(text)
}

/**
 * Opens the sessions of a queue's dashboard. While Redis is unavailable, the functions throw a
 * `QueueUnavailableError`.
 */
export function createSessions(redis: Redis, { base }: QueueKeys) {
  const run = openScript(redis, new URL('./sessions.lua', import.meta.url))

  async function store(
    kind: 'session' | 'login',
    value: Visitor | StoredSession,
    ms: number,
  ): Promise<string> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    await orUnavailable(run(base, nameOf(kind, token), JSON.stringify(value), ms))
    return token
  }

  return {
    /** Returns the token of a link that works once, for `LINK_MS`. */
    createLink: (visitor: Visitor) => store('login', visitor, LINK_MS),
    /** Uses up a link, and returns the visitor for whom it was made. */
    async useLink(token: string): Promise<Visitor | undefined> {
      if (!TOKEN.test(token)) return undefined
      const text = await orUnavailable(redis.getdel(base + nameOf('login', token)))
      return text === null ? undefined : JSON.parse(text)
    },
    /** Returns the token of a new session. */
    open: (visitor: Visitor) =>
      store('session', { ...visitor, endsAt: Date.now() + SESSION_MS }, IDLE_MS),
    /**
     * Returns the session of a token.
     * @param isVisit whether a person asks: an idle session is then extended.
     */
    async find(token: string, isVisit: boolean): Promise<Visitor | undefined> {
      if (!TOKEN.test(token)) return undefined
      const key = base + nameOf('session', token)
      const text = await orUnavailable(isVisit ? redis.getex(key, 'PX', IDLE_MS) : redis.get(key))
      const session: StoredSession | undefined = text === null ? undefined : JSON.parse(text)
      return session === undefined || session.endsAt <= Date.now() ? undefined : session
    },
    async close(token: string): Promise<void> {
      await orUnavailable(redis.del(base + nameOf('session', token)))
    },
  }
}

/**
 * Stores a link for the user of this machine, and returns its token.
 * @throws {QueueUnavailableError}
 */
export function createUserLink(
  redis: Redis,
  queue: string,
  role: Visitor['role'],
): Promise<string> {
  const by = `${userInfo().username}@${hostname()}`
  return createSessions(redis, queueKeys(queue)).createLink({ role, by })
}

function nameOf(kind: 'session' | 'login', token: string): string {
  return `${kind}:${hash('sha256', token)}`
}
