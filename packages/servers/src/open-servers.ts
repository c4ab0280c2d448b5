import { mkdir, readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Engine, Machine, Spot, Way } from './engine.ts'
import { firstOpenWay, UnusableData } from './first-open-way.ts'
import { freePort } from './free-port.ts'
import { keepRunning } from './keep-running.ts'
import { mongodbAnswers } from './mongodb-answers.ts'
import { mongodbUrl, mongodbWays } from './mongodb-ways.ts'
import { redisAnswers } from './redis-answers.ts'
import { redisUrl, redisWays } from './redis-ways.ts'
import { ServerDidNotStart, startEngine } from './start-engine.ts'
import { wheelsOf } from './wheels.ts'

export type ServerName = 'Redis' | 'MongoDB'

export interface OpenServers {
  /** Holds `redis` and `mongodb`, and in them a folder for each engine. */
  readonly dataDir: string
  /** Whether what a server acknowledged must outlive its own SIGKILL; costs speed. */
  readonly durable: boolean
  /** Of the environment: what names servers, and where to look for programs. */
  readonly env: {
    readonly REDIS_URL?: string | undefined
    readonly MONGODB_URL?: string | undefined
    readonly PATH?: string | undefined
    readonly XDG_CACHE_HOME?: string | undefined
  }
  /** Told, a line each, what was chosen and what happens. */
  readonly say: (line: string) => void
  readonly onDeath?: (name: ServerName, detail: string) => void
  /** Gives up opening. */
  readonly signal?: AbortSignal
}

export interface Servers {
  readonly redisUrl: string
  readonly mongodbUrl: string
  /** Stops what was started, and only that; may be called twice. Once `hurry` aborts, it kills. */
  stop(hurry?: AbortSignal): Promise<void>
}

/** A server that the environment names does not answer. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable'
}

interface Opened {
  readonly url: string
  stop(hurry?: AbortSignal): Promise<void>
}

/**
 * Finds or starts Redis and MongoDB: what the environment names, else the first way that is open on this machine. What
 * it started is started again when it dies, on the same port with the same data, and never outlives this process.
 * Throws ServerUnreachable, NoServerFound, UnusableData, DataInUse, or the signal's reason.
 */
export async function openServers(options: OpenServers): Promise<Servers> {
  const giveUp = new AbortController()
  const signal = AbortSignal.any([giveUp.signal, ...(options.signal ? [options.signal] : [])])
  const { env, say } = options
  const machine: Machine = { path: env.PATH ?? '', cacheDir: cacheDirOf(env.XDG_CACHE_HOME), say, signal }
  const wheels = wheelsOf(machine)
  const opening = [
    env.REDIS_URL
      ? named('Redis', env.REDIS_URL, redisAnswers, say)
      : started('Redis', redisWays(machine, wheels), redisUrl, options, signal),
    env.MONGODB_URL
      ? named('MongoDB', env.MONGODB_URL, (url) => mongodbAnswers(url, 5_000), say)
      : started('MongoDB', mongodbWays(machine, wheels), mongodbUrl, options, signal),
  ] as const
  try {
    const [redis, mongodb] = await Promise.all(opening)
    const stop = async (hurry?: AbortSignal) => void (await Promise.all([redis.stop(hurry), mongodb.stop(hurry)]))
    return { redisUrl: redis.url, mongodbUrl: mongodb.url, stop }
  } catch (error) {
    giveUp.abort()
    const results = await Promise.allSettled(opening)
    await Promise.all(results.map((result) => result.status === 'fulfilled' && result.value.stop()))
    throw error
  }
}

/** A server that somebody else runs may be far away, or busy. */
const NAMED_PATIENCE_MS = 3_000

async function named(
  name: ServerName,
  url: string,
  answers: (url: string, patienceMs: number) => Promise<boolean>,
  say: (line: string) => void,
): Promise<Opened> {
  const shown = withoutPassword(url)
  if (!(await answers(url, NAMED_PATIENCE_MS)))
    throw new ServerUnreachable(`${name} does not answer at ${shown}, which the environment names`)
  say(`${name}: ${shown}, as the environment names it; its data lies there`)
  return { url, stop: async () => {} }
}

async function started(
  name: ServerName,
  ways: readonly Way[],
  urlOf: (spot: Spot) => string,
  options: OpenServers,
  signal: AbortSignal,
): Promise<Opened> {
  const folder = resolve(options.dataDir, name.toLowerCase())
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const use = async (engine: Engine) => {
    const spot = { folder: join(folder, engine.folder), port: await freePort(), durable: options.durable }
    const server = await keep(name, engine, spot, options, signal)
    await tell(name, engine, spot, folder, options.say)
    return { url: urlOf(spot), stop: server.stop }
  }
  return firstOpenWay(name, ways, use, signal)
}

async function keep(name: ServerName, engine: Engine, spot: Spot, { say, onDeath }: OpenServers, signal: AbortSignal) {
  const isFirst = (await readdir(spot.folder).catch(() => [])).length === 0
  const onEnd = (detail: string) => {
    say(`${name} died (${detail}); starting it again on port ${spot.port} with its data`)
    onDeath?.(name, detail)
  }
  const onRestart = () => say(`${name} runs again on port ${spot.port}`)
  const launch = (launchSignal: AbortSignal) => startEngine(engine, spot, launchSignal)
  try {
    return await keepRunning({ launch, onDeath: onEnd, onRestart, signal })
  } catch (error) {
    if (isFirst || !(error instanceof ServerDidNotStart)) throw error
    throw new UnusableData(`${error.message}\nIts data from earlier lies in ${spot.folder}`)
  }
}

async function tell(name: ServerName, engine: Engine, spot: Spot, folder: string, say: (line: string) => void) {
  say(`${name}: ${engine.title}, port ${spot.port}; its data lies in ${spot.folder}`)
  if (engine.note) say(`${name}: ${engine.note}`)
  const others = (await readdir(folder)).filter((other) => other !== engine.folder)
  if (others.length > 0) say(`${name}: data of another server lies unused in ${folder}: ${others.join(', ')}`)
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//')
}

function cacheDirOf(xdgCacheHome: string | undefined): string {
  return join(xdgCacheHome || join(homedir(), '.cache'), 'sluice')
}
