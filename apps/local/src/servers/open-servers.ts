// Finds or starts Redis and MongoDB, for `start` and for tests.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { keepRunning } from './keep-running.ts'
import { DidNotStart } from './launch-process.ts'
import { freePort, isPortFree } from './machine.ts'
import { askNamedMongodb, mongodbProviders, mongodbUrl } from './mongodb-providers.ts'
import type { Engine, Location, Machine, Provider } from './provider.ts'
import { NoServer, UnusableData, useFirstProvider } from './provider.ts'
import { askRedis, redisProviders, redisUrl } from './redis-providers.ts'
import { endLeftover, serverLog, startEngine } from './start-engine.ts'
import { wheelsOf } from './wheels.ts'

export type ServerName = 'Redis' | 'MongoDB'

export interface OpenServers {
  /**
   * The folder that contains the folders `redis` and `mongodb`. In each of these, every engine has
   * a folder.
   */
  readonly dataDir: string
  /** Whether acknowledged writes must survive a SIGKILL of the server, which makes it slower. */
  readonly durable: boolean
  /** For tests: whether MongoDB accepts `configureFailPoint`, which makes other commands fail. */
  readonly testCommands?: boolean
  /**
   * REDIS_URL and MONGODB_URL name servers, PATH has the folders of programs, and XDG_CACHE_HOME is
   * the folder for downloads.
   */
  readonly env: NodeJS.ProcessEnv
  /**
   * Rejects with the reason if the named Redis can't be used. The default check does not accept a
   * URL with Sentinels.
   */
  readonly checkRedis?: (url: string) => Promise<void>
  /** Called with a line about each choice and each event. */
  readonly say: (line: string) => void
  /**
   * For tests: bounds the memory of an emulator, in bytes, in place of the emulator's default
   * bound.
   */
  readonly maxEmulatorBytes?: number
  /** When it aborts, the servers are no longer opened. */
  readonly signal?: AbortSignal
}

export interface Servers {
  readonly redisUrl: string
  readonly mongodbUrl: string
  /**
   * Stops the servers that this call has started, and no others. If `hurry` aborts, kills them. May
   * be called twice.
   */
  stop(hurry?: AbortSignal): Promise<void>
}

interface Opened {
  readonly url: string
  stop(hurry?: AbortSignal): Promise<void>
}

/**
 * Uses the servers that the environment names. Starts each other server, with the first provider
 * whose program starts. If a started server dies, restarts it on the same port with the same data.
 * It never outlives this process.
 * @throws {NoServer | UnusableData} or the signal's reason.
 */
export async function openServers(options: OpenServers): Promise<Servers> {
  const abandon = new AbortController()
  const signal = AbortSignal.any([abandon.signal, ...(options.signal ? [options.signal] : [])])
  const { env, say } = options
  const cacheDir = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice')
  const machine: Machine = { path: env.PATH ?? '', cacheDir, say, signal }
  const wheels = wheelsOf(machine)
  const opening = [
    env.REDIS_URL
      ? named('Redis', env.REDIS_URL, options.checkRedis ?? askRedis, say)
      : started('Redis', redisProviders(machine, wheels), redisUrl, options, signal),
    env.MONGODB_URL
      ? named('MongoDB', env.MONGODB_URL, askNamedMongodb, say)
      : started('MongoDB', mongodbProviders(machine, wheels), mongodbUrl, options, signal),
  ] as const
  try {
    const [redis, mongodb] = await Promise.all(opening)
    const stop = async (hurry?: AbortSignal) =>
      void (await Promise.all([redis.stop(hurry), mongodb.stop(hurry)]))
    return { redisUrl: redis.url, mongodbUrl: mongodb.url, stop }
  } catch (error) {
    abandon.abort()
    const results = await Promise.allSettled(opening)
    await Promise.all(results.map((result) => result.status === 'fulfilled' && result.value.stop()))
    throw error
  }
}

async function named(
  name: ServerName,
  url: string,
  check: (url: string) => Promise<void>,
  say: (line: string) => void,
): Promise<Opened> {
  // The URL without its passwords. A Sentinel's password is in the query.
  const shown = url.replace(/\/\/.*@|\?.*/g, (part) => (part.startsWith('/') ? '//' : ''))
  await check(url).catch((error) => {
    const reason = error instanceof Error ? error.message : error
    throw new NoServer(`${name} can't be used at ${shown}, the URL in the environment: ${reason}`)
  })
  say(`${name}: ${shown}, named by the environment; its data is there`)
  return { url, stop: async () => {} }
}

async function started(
  name: ServerName,
  providers: readonly Provider[],
  urlOf: (location: Location) => string,
  options: OpenServers,
  signal: AbortSignal,
): Promise<Opened> {
  const folder = resolve(options.dataDir, name.toLowerCase())
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const use = async (found: Engine) => {
    const { maxBytes, maxEmulatorBytes } = { ...found, ...options }
    const engine =
      maxBytes === undefined ? found : { ...found, maxBytes: maxEmulatorBytes ?? maxBytes }
    const { durable, testCommands = false } = options
    const dataFolder = join(folder, engine.folder)
    const location = { folder: dataFolder, port: await portOf(dataFolder), durable, testCommands }
    const server = await keep(name, engine, location, options, signal)
    await writeFile(portFile(dataFolder), String(location.port))
    await report(name, engine, location, urlOf(location), options.say)
    return { url: urlOf(location), stop: server.stop }
  }
  return useFirstProvider(name, providers, use, signal)
}

/**
 * Returns the port of the last start on this data if it is free, so that other tools find the
 * server there. Otherwise returns another port.
 */
async function portOf(dataFolder: string): Promise<number> {
  const last = Number(await readFile(portFile(dataFolder), 'utf8').catch(() => ''))
  if (!Number.isInteger(last) || last < 1 || last > 65_535) return freePort()
  // A server that has outlived its parent still listens on the port.
  await endLeftover(dataFolder)
  return (await isPortFree(last)) ? last : freePort()
}

const portFile = (dataFolder: string) => join(dataFolder, 'sluice-port')

/**
 * After the first failed restarts, no advice is given, because the cause may disappear by itself.
 */
const FAILURES_BEFORE_ADVICE = 3

async function keep(
  name: ServerName,
  engine: Engine,
  location: Location,
  { say }: OpenServers,
  signal: AbortSignal,
) {
  const isFirst = (await readdir(location.folder).catch(() => [])).length === 0
  const adviceAfter = (failures: number) =>
    failures < FAILURES_BEFORE_ADVICE ? '' : adviceOn(name, engine, location, failures)
  const launch = (launchSignal: AbortSignal) => startEngine(engine, location, launchSignal)
  try {
    return await keepRunning({ name, log: serverLog(location), launch, say, adviceAfter, signal })
  } catch (error) {
    if (isFirst || !(error instanceof DidNotStart)) throw error
    throw new UnusableData(`${error.message}\nIts earlier data is in ${location.folder}`)
  }
}

function adviceOn(name: ServerName, engine: Engine, location: Location, failures: number): string {
  return [
    `${engine.title} failed ${failures} times; accepted requests wait meanwhile. What to do:`,
    `  - read ${serverLog(location)}`,
    `  - check that the disk of ${location.folder} has space, and that no other program listens on port ${location.port}`,
    `  - or stop with Ctrl-C, and name a server of your own with ${name === 'Redis' ? 'REDIS_URL' : 'MONGODB_URL'}`,
  ].join('\n')
}

async function report(
  name: ServerName,
  engine: Engine,
  location: Location,
  url: string,
  say: OpenServers['say'],
) {
  const folder = dirname(location.folder)
  say(`${name}: ${url} (${engine.title}; data: ${location.folder})`)
  if (engine.note) say(`${name}: ${engine.note}`)
  const others = (await readdir(folder)).filter((other) => other !== engine.folder)
  if (others.length > 0)
    say(`${name}: unused data of another server in ${folder}: ${others.join(', ')}`)
}
