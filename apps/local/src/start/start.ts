// Runs all of Sluice on this machine, and prepares keys and a first request.
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKey, createKeyring, keyAccess, type NewKey } from '@sluice/credentials/keys'
import { processSettings } from '@sluice/process'
import type { StoreConnection } from '@sluice/store'
import type { QueueAddress } from '@sluice/terminal'
import { claimFolder, type InstancePaths, instancePaths, loginLink } from '@sluice/terminal'
import { type Kept, keepRunning } from '../servers/keep-running.ts'
import { type LaunchedProcess, launchNode } from '../servers/launch-process.ts'
import { openServers } from '../servers/open-servers.ts'
import { type App, appsOf, choosePorts, DASHBOARD_HOST, type Mains, type Ports } from './apps.ts'

export interface StartOptions {
  /** The folder whose `.sluice/` has all files of the instance. */
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  readonly host: string
  readonly port: number
  readonly workers: number
  /** An app may take this long to stop, in milliseconds. */
  readonly graceMs: number
  readonly mains: Mains
  readonly connectStore: (mongodbUrl: string) => StoreConnection
  /**
   * Rejects with the reason if the Redis at a URL can't be used. The URL may name Sentinels, or
   * nodes of a cluster.
   */
  readonly checkRedis: (redisUrl: string) => Promise<void>
  /** Stores a link with which an operator can log in to the dashboard, and returns its token. */
  readonly createLink: (server: QueueAddress) => Promise<string>
  readonly say: (line: string) => void
  /**
   * If `stopping` aborts, everything is stopped in an orderly way. If `hurry` aborts, it is killed.
   */
  readonly stopping: AbortSignal
  readonly hurry: AbortSignal
}

/**
 * Runs all of Sluice on this machine until `stopping` aborts. Then stops the API, the workers, the
 * dashboard and the servers, in this order. If it throws, nothing is left running.
 * @throws {UserError | DidNotStart} and what `openServers` throws.
 */
export async function start(options: StartOptions): Promise<void> {
  const { folder, env, host, port, checkRedis, say, stopping, hurry } = options
  const paths = instancePaths(folder)
  const apiUrl = urlOf(host, port)
  await using resources = new AsyncDisposableStack()

  const claim = await claimFolder(paths, apiUrl)
  resources.defer(claim.release)
  const ports = await choosePorts(port, host, options.workers)
  const servers = await openServers({
    dataDir: paths.data,
    durable: true,
    env,
    checkRedis,
    say,
    signal: stopping,
  })
  resources.defer(() => servers.stop(hurry))
  const dashboardUrl = env.DASHBOARD_URL || urlOf(DASHBOARD_HOST, ports.dashboard)
  const { redisUrl, mongodbUrl } = servers
  await claim.recordServers({ redisUrl, mongodbUrl, dashboardUrl })
  const key = await prepareKeys(paths, options.connectStore(mongodbUrl))

  const ownUrls = { REDIS_URL: redisUrl, MONGODB_URL: mongodbUrl, DASHBOARD_URL: dashboardUrl }
  // People who try out Sluice want to see what was stored.
  const serverEnv = { ...env, ...ownUrls, LIST_SOURCES: env.LIST_SOURCES || 'on' }
  const apps = appsOf(options.mains, serverEnv, host, ports)
  const running = await keepApps(apps, paths.logs, options, resources)
  for (const line of summary(running, ports, host, paths.logs)) say(line)
  say(`Key: ${key} (stored in ${paths.key})`)
  say('Try it:')
  say(`  ${pasteableCurl(apiUrl, key)}`)
  say(`Stop: Ctrl-C, or kill ${process.pid}`)
  say(`Ready: ${apiUrl}`)
  say(`Docs: ${apiUrl}/docs`)
  const token = await options.createLink({
    redisUrl,
    queue: env.QUEUE || processSettings.queue.fallback,
  })
  say(`Dashboard: ${loginLink(dashboardUrl, token)} (process ${running.get('dashboard')})`)
  say('This link logs in once, within ten minutes; `./sluice login` prints another one.')

  if (!stopping.aborted) await once(stopping, 'abort')
  say(`Stopping (${stopping.reason.message}); press Ctrl-C again to stop at once`)
}

/**
 * Starts all apps together, and restarts an app whenever it dies. `resources` stops them, even if
 * one fails to start. Returns the process ids by the names of the apps.
 * @throws {DidNotStart} or the reason of `stopping`.
 */
async function keepApps(
  groups: readonly (readonly App[])[],
  logs: string,
  { graceMs, say, stopping, hurry }: StartOptions,
  resources: AsyncDisposableStack,
): Promise<ReadonlyMap<string, number>> {
  const ending = new AbortController()
  const signal = AbortSignal.any([stopping, ending.signal])
  const adviceAfter = () => 'If the reason stays, stop with Ctrl-C and fix it.'
  const starting = groups.map((apps) => {
    const kept = apps.map(({ name, main, env }) => {
      const log = join(logs, `${name}.log`)
      const launch = (until: AbortSignal) => launchNode(name, { main, env, log, graceMs }, until)
      return keepRunning({ launch, name, log, say, adviceAfter, signal })
    })
    resources.defer(() => stopAll(kept, hurry))
    return apps.map(
      async ({ name }, index) => [name, (await kept[index])?.current().pid ?? 0] as const,
    )
  })
  resources.defer(() => ending.abort())
  return new Map(await Promise.all(starting.flat()))
}

async function stopAll(
  starting: readonly Promise<Kept<LaunchedProcess>>[],
  hurry: AbortSignal,
): Promise<void> {
  const started = await Promise.allSettled(starting)
  await Promise.all(
    started.map((result) => result.status === 'fulfilled' && result.value.stop(hurry)),
  )
}

function summary(
  pids: ReadonlyMap<string, number>,
  ports: Ports,
  host: string,
  logs: string,
): readonly string[] {
  const describe = (app: string, admin: number) =>
    `process ${pids.get(app)} (metrics: http://127.0.0.1:${admin}/metrics)`
  const workers = ports.workerAdmin.map((admin, index) => describe(`worker-${index + 1}`, admin))
  const api = `API: ${urlOf(host, ports.api)}, ${describe('api', ports.apiAdmin)}`
  return [api, `Workers: ${workers.join(', ')}`, `Logs: ${logs}`]
}

/**
 * Returns a URL with the loopback address if the host is a wildcard address, because this machine
 * reaches the API by that.
 */
function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/**
 * Writes this folder's keys into files that only their owner can read. Does so at the first start,
 * and again if the database does not accept a key (it is another database, or the key was revoked).
 * Closes the connection. Returns the importer's key.
 */
async function prepareKeys(files: InstancePaths, store: StoreConnection): Promise<string> {
  const keyring = createKeyring(keyAccess(store.db))
  async function localKey(file: string, create: () => Promise<NewKey>): Promise<string> {
    const stored = await readFile(file, 'utf8').catch(() => '')
    const { outcome } = await keyring.find(stored.trim())
    if (outcome === 'known') return stored.trim()
    const { key } = await create()
    await writeFile(file, `${key}\n`, { mode: 0o600 })
    return key
  }
  try {
    // The date makes names unique: several folders may use one database, and each may lose its
    // files.
    const at = new Date().toISOString()
    const key = await localKey(files.key, () =>
      createKey(store.db, { tenant: 'local', name: `first key, ${at}`, deletes: true }),
    )
    const operator = { role: 'operator', name: `operator of start, ${at}` } as const
    await localKey(files.operatorKey, () => createKey(store.db, operator))
    return key
  } finally {
    await keyring.close()
    await store.close()
  }
}

const thread = {
  title: 'Dark mode, please',
  externalId: 'thread-1',
  service: 'slack',
  quotes: [
    { externalId: 'message-1', speaker: 'Ada', text: 'Could the editor have a dark mode?' },
    {
      externalId: 'message-2',
      speaker: 'Grace',
      text: 'It would help at night.',
      replyingTo: 'message-1',
    },
  ],
}

/** Makes a command that posts a small thread, to paste into a shell. */
function pasteableCurl(apiUrl: string, key: string): string {
  const headers = [`x-api-key: ${key}`, 'content-type: application/json'].map(
    (header) => `-H '${header}'`,
  )
  return `curl -sS ${apiUrl}/sources ${headers.join(' ')} -d '${JSON.stringify(thread)}'`
}
