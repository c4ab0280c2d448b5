// Lua scripts: .lua files, with parts and includes, and what Lua does otherwise than JavaScript.
import { readFileSync } from 'node:fs'

/** Reads a part of a file (from `--part NAME`), or what precedes its parts, with its `--include`s. */
export function readScript(address: URL): string {
  const [head, ...parts] = readFileSync(address, 'utf8').split(/^--part /m)
  const begin = `${address.hash.slice(1)}\n`
  const text = address.hash === '' ? head : parts.find((part) => part.startsWith(begin))?.slice(begin.length)
  if (text === undefined) throw new Error(`no script at ${address}`)
  return text.replaceAll(/^--include (\S+)$/gm, (_, included: string) => readScript(new URL(included, address)))
}

/** A script with flags may run although Redis is full. Redis 6.2 has no flags: a syntax error. */
const FLAGS = /^#!.*/
const FLAGS_UNKNOWN = /unexpected symbol near '#'/
/** A full Redis 6.2 refuses only the first write of a script, and only if that command may need memory. */
const HARMLESS_WRITE = "redis.call('DEL', KEYS[1] .. 'never')"

/** Returns the script as Redis 6.2 runs it. Throws the error if it has another cause than the script's flags. */
export function forOldRedis(lua: string, error: Error): string {
  if (!FLAGS_UNKNOWN.test(error.message)) throw error
  return lua.replace(FLAGS, HARMLESS_WRITE)
}

/** Lowers ASCII letters only, as Lua's `string.lower` does. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
}
