// Runs Lua scripts. A .lua file can have several parts, and can include parts of other files.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Redis } from 'ioredis'

/**
 * Runs a script.
 * @param key the prefix of all keys that the script uses: the base of the queue or of a lane.
 * @param args an object is sent as JSON: see `scriptJson`.
 */
export type Script = (key: string, ...args: (string | number | object)[]) => Promise<unknown>

/**
 * Writes JSON for Redis's parser. The parser refuses half a surrogate pair, so it becomes U+FFFD,
 * as in UTF-8.
 */
export function scriptJson(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes('\\ud')) return text
  return text.replace(
    /(\\\\)|\\ud[89a-f][0-9a-f]{2}/g,
    (_, backslash?: string) => backslash ?? '\ufffd',
  )
}

/**
 * With one of these codes, Redis is unavailable for any command. Redis 6.2 puts other words before
 * the code.
 */
const UNAVAILABLE =
  /\b(LOADING|MISCONF|READONLY|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|MOVED|TRYAGAIN|OOM|BUSY|NOAUTH|NOPERM) /

/**
 * Returns whether Redis was unavailable. If not, the command would fail again, because of its
 * arguments or keys.
 */
export function isUnavailable({ name, message }: Error): boolean {
  return name === 'ReplyError' ? UNAVAILABLE.test(message) : !/^(Type|Range)Error$/.test(name)
}

/** Returns a script's reply if it is a list, otherwise an empty list. */
export function asList(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

interface ScriptMetrics {
  times: { observe(labels: { command: string }, seconds: number): void }
  errors: { inc(labels: { code: string }): void }
  /**
   * Called if Redis refuses a script although it is available. Then Sluice or its keys are at
   * fault.
   */
  onRefused: (script: string, error: Error) => void
}

const metricsOf = new WeakMap<Redis, ScriptMetrics>()

/** Observes the scripts that run on a connection, by their names. */
export function observeCommands(redis: Redis, metrics: ScriptMetrics): void {
  metricsOf.set(redis, metrics)
}

/**
 * The first line of a script that runs even if Redis is full. Redis 6.2 takes these flags for a
 * syntax error.
 */
const ALLOW_OOM = /^#!lua flags=allow-oom/
/**
 * Replaces that line, on all versions. A full Redis refuses a script if the script's first write
 * may need memory, and DEL needs none. A script that only reads must not have the line, because
 * with a write Redis refuses it if replicas are missing.
 */
const HARMLESS_WRITE = "redis.call('DEL', KEYS[1] .. 'never')"

/** Commands that processes send, and those in the scripts that this process has opened. */
const commands = new Set(
  'GET SET MGET HGET HMGET HGETALL ZRANGE ZREVRANGE XRANGE XREVRANGE BZPOPMIN'.split(' '),
)

/**
 * Makes a function that reads why Redis refuses writes, and which commands its user may not send
 * (NOPERM); '' if Redis refuses nothing. Rejects if the user may not run scripts on these keys.
 */
export function createReadRefusal(redis: Redis, base: string) {
  const read = openScript(redis, new URL('./refusal.lua', import.meta.url))
  return async () => {
    const [writes, refused] = asList(await read(base, ...commands))
    return { writes: String(writes), commands: String(refused) }
  }
}

/**
 * Opens a script as a command of a connection. If the address has a part's name after `#`, opens
 * that part of the file.
 */
export function openScript(redis: Redis, address: URL): Script {
  const name = address.href.split('/').at(-1)?.replace('.lua', '') ?? ''
  const command = `sluice:${name}`
  const lua = readScript(address).replace(ALLOW_OOM, HARMLESS_WRITE)
  for (const [, sent = ''] of lua.matchAll(/redis\.call\('(\w+)'/g)) commands.add(sent)
  // On each connection, ioredis first sends the whole script, and after that only its hash.
  redis.defineCommand(command, { lua, numberOfKeys: 1 })
  return (key, ...given) => {
    const args = given.map((arg) => (typeof arg === 'object' ? scriptJson(arg) : arg))
    const reply: Promise<unknown> = Reflect.get(redis, command).call(redis, key, ...args)
    observe(reply, name, metricsOf.get(redis))
    return reply
  }
}

function observe(
  reply: Promise<unknown>,
  command: string,
  metrics: ScriptMetrics | undefined,
): void {
  if (metrics === undefined) return
  const began = performance.now()
  const end = () => metrics.times.observe({ command }, (performance.now() - began) / 1000)
  reply.then(end, (error) => {
    end()
    metrics.errors.inc({ code: errorCodeOf(error) })
    if (!isUnavailable(error)) metrics.onRefused(command, error)
  })
}

/**
 * Reads the part of a file that begins with `--part NAME` or, without a name, the text before the
 * first part. Inserts what `--include` names.
 */
function readScript(address: URL): string {
  const [head, ...parts] = readFileSync(address, 'utf8').split(/^--part /m)
  const begin = `${address.hash.slice(1)}\n`
  const text =
    address.hash === '' ? head : parts.find((part) => part.startsWith(begin))?.slice(begin.length)
  if (text === undefined) throw new Error(`no script at ${address}`)
  return text.replaceAll(/^--include (\S+)$/gm, (_, included: string) =>
    readScript(includedBy(address, included)),
  )
}

/**
 * Resolves an include: a path relative to the file, or `@sluice/PACKAGE/PATH`, which the package
 * must export.
 */
function includedBy(address: URL, included: string): URL {
  if (!included.startsWith('@')) return new URL(included, address)
  const [file = '', part = ''] = included.split('#')
  return Object.assign(pathToFileURL(createRequire(address).resolve(file)), { hash: part })
}

function errorCodeOf(error: unknown): string {
  const isOfRedis = error instanceof Error && error.name === 'ReplyError'
  return (isOfRedis && /^[A-Z]+/.exec(error.message)?.[0]) || 'connection'
}
