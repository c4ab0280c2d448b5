// Runs Lua scripts, each of which lies in a .lua file.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Redis } from 'ioredis'

/** Runs a script on one key and on keys that begin with it. */
export type Script = (key: string, ...args: (string | number)[]) => Promise<unknown>

/** A script begins with flags if it may run although Redis is full. Redis 6.2 knows no flags and takes the line for a fault. */
const FLAGS = /^#!.*/
const FLAGS_UNKNOWN = /unexpected symbol near '#'/
/** A full Redis 6.2 refuses only the first write of a script, and only if it may take memory. */
const HARMLESS_WRITE = "redis.call('DEL', KEYS[1] .. 'never')"

/** Reads a script once, when its module is loaded, and gives a function that makes it a command of a connection. */
export function loadScript(file: URL): (redis: Redis) => Script {
  const name = `sluice:${basename(fileURLToPath(file), '.lua')}`
  const lua = readWithIncludes(file)
  return (redis) => {
    // ioredis sends the script whole once for each connection, and then its hash.
    const define = (text: string) => redis.defineCommand(name, { lua: text, numberOfKeys: 1 })
    const run: Script = (...args) => Reflect.get(redis, name).apply(redis, args)
    define(lua)
    return (...args) =>
      run(...args).catch((error) => {
        if (!FLAGS_UNKNOWN.test(error.message)) throw error
        define(lua.replace(FLAGS, HARMLESS_WRITE))
        return run(...args)
      })
  }
}

/** A line `--include NAME` stands for the file of that name in the script's folder. */
function readWithIncludes(file: URL): string {
  const included = (_: string, name: string) => readFileSync(new URL(name, file), 'utf8')
  return readFileSync(file, 'utf8').replaceAll(/^--include (\S+)$/gm, included)
}
