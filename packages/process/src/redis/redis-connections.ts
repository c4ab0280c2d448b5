// Opens connections to Redis, of which some fail fast and others retry.
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { QueueAddress } from './find-primary.ts'
import { openPrimary } from './primary.ts'

// ioredis 6 has a class that extends String. This leaves V8's String.prototype in a slow form, in
// which counting words takes 2.6 times as long. Enumerating the prototype makes it fast again.
for (const _ in String.prototype) break

/** Called with each error of a connection. The connection reconnects by itself. */
type OnError = (error: Error) => void

const backoff = (attempt: number) => Math.min(50 * 2 ** attempt, 500)

/** Replies of a server that is no longer the queue's primary, and has not run the command. */
const MOVED = /^(MOVED|READONLY)/
/**
 * Replies of a server that may have been replaced without noticing it, or of a cluster without a
 * primary.
 */
const ISOLATED = /^(CLUSTERDOWN|NOREPLICAS|MASTERDOWN)/
const ISOLATED_EVERY_MS = 1_000

/**
 * Makes `reconnectOnError` for ioredis: reconnects to find the new primary. From an isolated
 * server, does so at most once in `ISOLATED_EVERY_MS`. If `moved` is 2, ioredis sends the command
 * that the old primary refused again. If it is 1, ioredis does not.
 */
function createReconnectOnError(moved: 1 | 2) {
  let last = Number.NEGATIVE_INFINITY
  return ({ message }: Error): false | 1 | 2 => {
    if (MOVED.test(message)) return moved
    if (!ISOLATED.test(message) || performance.now() - last < ISOLATED_EVERY_MS) return false
    last = performance.now()
    return 1
  }
}

/**
 * If a reply is due for this long, its connection is replaced, because TCP would notice a dead peer
 * only after a quarter of an hour. Where no callers wait, the time is longer, because Redis is then
 * more likely to be slow than dead. A failover in which the old server says nothing delays jobs by
 * this time. The locks of a worker that has waited for so long have expired.
 */
const SILENT_MS = { callersWait: 2_000, elsewhere: 6_000 }

/**
 * Connects for callers that can't wait. While Redis is unavailable, commands fail immediately.
 * While it hangs, they fail within 1.5 s.
 */
export function connectFailFast(address: QueueAddress, onError: OnError): Redis {
  const times = {
    commandTimeout: 1_500,
    connectTimeout: 1_500,
    socketTimeout: SILENT_MS.callersWait,
  }
  // No command is sent again, because it could add a job whose caller was already told that it was
  // refused.
  const commands = {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
  }
  const options = {
    ...commands,
    ...times,
    retryStrategy: backoff,
    reconnectOnError: createReconnectOnError(1),
  }
  return openPrimary(address, options).on('error', onError)
}

/** Connects for work that can wait. Commands are retried until Redis is available again. */
export function connectRetrying(address: QueueAddress, onError: OnError): Redis {
  return openPrimary(address, retrying(SILENT_MS.elsewhere)).on('error', onError)
}

/**
 * Connects to the server to which another connection leads, for work that can wait. If a reply is
 * due for `silentMs`, the connection counts as dead, so a command must block for a shorter time.
 */
export function connectLike(redis: Redis, onError: OnError, silentMs: number): Redis {
  return redis.duplicate(retrying(silentMs)).on('error', onError)
}

const retrying = (silentMs: number) => ({
  commandTimeout: undefined,
  connectTimeout: 10_000,
  socketTimeout: silentMs,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  autoResendUnfulfilledCommands: true,
  retryStrategy: backoff,
  reconnectOnError: createReconnectOnError(2),
})

const ASK_EVERY_MS = 250

/**
 * Notices when Redis becomes silent. Call `begin` after a command without a reply. It calls `ask`
 * until Redis answers, and `lasts` is true until then.
 */
export function createSilence(redis: Redis, ask: () => Promise<unknown>) {
  const silence = {
    lasts: false,
    async begin(): Promise<void> {
      if (silence.lasts) return
      silence.lasts = true
      while (silence.lasts && redis.status !== 'end') {
        silence.lasts = await ask().then(
          () => false,
          () => delay(ASK_EVERY_MS, true, { ref: false }),
        )
      }
    },
  }
  return silence
}
