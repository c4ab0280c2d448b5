// Runs Lua scripts, each of which lies in a .lua file.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Redis } from 'ioredis'

/** Runs a script on the key that it is given and on keys that begin with it. */
export type Script = (key: string, ...args: (string | number)[]) => Promise<unknown>

/** Reads a script once, when its module is loaded, and gives a function that makes it a command of a connection. */
export function loadScript(file: URL): (redis: Redis) => Script {
  const name = `sluice:${basename(fileURLToPath(file), '.lua')}`
  const lua = readWithIncludes(file)
  return (redis) => {
    // ioredis sends the script whole once for each connection, and then its hash.
    redis.defineCommand(name, { lua, numberOfKeys: 1 })
    return Reflect.get(redis, name).bind(redis)
  }
}

/** A line `--include NAME` stands for the file of that name in the script's folder. */
function readWithIncludes(file: URL): string {
  const included = (_: string, name: string) => readFileSync(new URL(name, file), 'utf8')
  return readFileSync(file, 'utf8').replaceAll(/^--include (\S+)$/gm, included)
}
