// Runs an API, a worker or a dashboard: opens what all of them need, in the same order. Each
// `main.ts` adds the rest.
import { createKeyring, keyAccess } from '@sluice/credentials/keys'
import {
  checkOf,
  createLogger,
  type Life,
  type Logger,
  type mongoMetrics,
  type openMetrics,
  openTracing,
  pingWhenAsked,
  type processSettings,
  REVISION,
  type Readiness,
  readinessOf,
  runUntilStopped,
  type Settings,
  shareFor,
  startAdminServer,
  VERSION,
} from '@sluice/process'
import {
  connectFailFast,
  connectRetrying,
  createReadRefusal,
  observeCommands,
  openRedisClock,
  readRedisUrl,
  watchLayout,
  watchRedis,
} from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { connectStore, hostsOf } from '@sluice/store/connect'
import { type ProcessReport, startHeartbeats } from './heartbeats.ts'
import { createRedisErrorLog, createScriptErrorLog } from './redis-error-log.ts'
import { watchStore } from './watch-store.ts'

/**
 * Redis is asked only this often which commands it refuses to its user, because the rights of a
 * user rarely change.
 */
const RIGHTS_EVERY_MS = 5_000

type AllSettings = Settings<typeof processSettings>

type Process = { opened: ReturnType<typeof openMetrics<typeof mongoMetrics>> } & (
  | { kind: 'api' | 'worker'; settings: AllSettings }
  // The dashboard handles no threads, so it is not traced, and starts even if Redis or MongoDB is
  // unfit for them.
  | { kind: 'dashboard'; settings: Omit<AllSettings, 'redisChecks' | 'minRedisMemory'> }
)

type Connected = Awaited<ReturnType<typeof connect>>

/** What a process gets to start its own parts. */
type Wired = Life & Connected & ReturnType<typeof stepsOf>

/**
 * Runs a process until it is stopped: connects, then calls `start`, which opens the rest.
 * Everything is released in reverse order.
 */
export function runProcess(
  process: Process & { start: (wired: Wired) => Promise<void> },
): Promise<never> {
  const { kind, settings, start } = process
  const log = createLogger(kind, settings.logLevel)
  return runUntilStopped({
    graceSeconds: settings.shutdownGraceSeconds,
    log,
    async start(life) {
      const connected = await connect(process, log, life)
      await start({ ...life, ...connected, ...stepsOf(process, life, connected) })
    },
  })
}

/** Opens traces, and connections to MongoDB and Redis. Both servers may be unavailable. */
async function connect({ kind, settings, opened }: Process, log: Logger, { release }: Life) {
  const { redisTime, redisErrors, mongoTime, mongoErrors } = opened.metrics
  const onRedisError = createRedisErrorLog(log, () => redis.status === 'ready')
  if (kind !== 'dashboard') release('tracing', await openTracing(kind, settings))
  // A worker observes its own commands, because the driver's events cost CPU.
  const storeMetrics = kind === 'worker' ? undefined : { times: mongoTime, errors: mongoErrors }
  const store = connectStore(settings.mongodbUrl, storeMetrics)
  release('store', () => store.close())
  const connectRedis = kind === 'worker' ? connectRetrying : connectFailFast
  const redis = connectRedis(settings, onRedisError)
  release('redis', () => redis.disconnect())
  const onRefused = createScriptErrorLog(log)
  observeCommands(redis, { times: redisTime, errors: redisErrors, onRefused })
  const { db, unauthorized } = store
  return { log, db, unauthorized, redis, onRedisError, keys: queueKeys(settings.queue) }
}

/** Names the servers of a process, without credentials. */
function serversOf(
  { redisUrl, queue }: Pick<AllSettings, 'redisUrl' | 'queue'>,
  db: Connected['db'],
) {
  const redis = readRedisUrl(redisUrl).endpoints.map(({ host, port }) => `${host}:${port}`)
  return { queue, redis: redis.join(','), database: db.databaseName, mongodb: hostsOf(db) }
}

/** The steps that each process takes at a different point of its start. */
function stepsOf(
  process: Process,
  { release, stopping, stop }: Life,
  { log, db, unauthorized, redis, keys }: Connected,
) {
  const { kind, settings, opened } = process
  const servers = serversOf(settings, db)
  const clock = openRedisClock(redis)
  const readRefusal = createReadRefusal(redis, keys.base)
  /** Reads which commands the user of Redis may not send, although this process needs them. */
  const readRefused = async () => (await readRefusal()).commands || undefined
  let fault: Error | undefined
  redis.on('error', (error) => (fault = error)).on('ready', () => (fault = undefined))
  return {
    /** The servers that the process uses, for people. */
    servers,
    /** Asks by a script, because a user that may send PING, but no script, can't work. */
    pingRedis: pingWhenAsked(async () => {
      if (redis.status !== 'ready') throw fault ?? new Error('not connected to Redis')
      const refused = await readRefused()
      if (refused !== undefined) throw new Error(refused)
    }),
    /**
     * Checks the layouts, the store that the queue feeds and, except for a dashboard, Redis: now,
     * and while the process runs.
     */
    async watchQueue() {
      const warn = (fault: string) => log.warn({ fault }, 'redis.unfit')
      if (process.kind !== 'dashboard') await watchRedis(redis, process.settings, warn)
      await watchLayout(redis, keys.base, ({ message }) => stop(message))
      return watchStore({ kind, db, redis, keys, log, stop })
    },
    /** Opens the keyring, which checks the keys of callers and of people. */
    openKeyring() {
      const keyring = createKeyring({
        ...keyAccess(db),
        // A key has expired if either clock says so: this machine's may be behind.
        now: clock.laterNow,
        onError: (err) => log.warn({ err }, 'keys.not_reached'),
      })
      release('keyring', () => keyring.close())
      return keyring
    },
    /**
     * Serves the admin port. The process is ready if these checks are ok and it is not stopping.
     */
    async serveAdmin(
      checks: () => Promise<Readiness['checks']>,
      findFault?: () => string | undefined,
    ) {
      const readiness = async () => {
        const others = await checks()
        return readinessOf({ process: checkOf(!stopping.aborted, 'stopping'), ...others })
      }
      const admin = await startAdminServer({
        ...settings,
        metrics: opened,
        readiness,
        ...(findFault && { findFault }),
      })
      release('admin server', admin.close)
      return { adminPort: admin.port, readiness }
    },
    /** Sends heartbeats with what `read` returns, now and every second. */
    sendHeartbeats(read: () => Promise<ProcessReport>): void {
      const ofKind = { kind, version: VERSION, revision: REVISION, servers }
      const byRedis = shareFor(RIGHTS_EVERY_MS, () => readRefused().catch(() => undefined))
      const report = async () => {
        const refused = { refusedCommands: await byRedis(), refusedByStore: unauthorized() }
        return { ...(await read()), ...refused }
      }
      release('heartbeats', startHeartbeats(redis, keys, ofKind, report, clock.note))
    },
  }
}
