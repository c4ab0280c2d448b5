import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openServers } from '@sluice/local'
import type { Bench } from './bench.ts'
import { listenerOf } from './measure/listener-of.ts'
import type { NamedProcess } from './measure/round.ts'
import type { Scale } from './scale.ts'

/** Finds or starts the servers and describes them; the stack stops the started ones. */
export async function openBench(
  scale: Scale,
  parts: AsyncDisposableStack,
  say: (line: string) => void,
): Promise<Omit<Bench, 'server'>> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  parts.defer(() => rm(folder, { recursive: true, force: true }))
  const servers = await openServers({ dataDir: folder, durable: true, env: process.env, say })
  parts.defer(() => servers.stop())
  return {
    ...servers,
    isMongodbOwn: !process.env.MONGODB_URL,
    scale,
    folder,
    run: `bench-${randomBytes(4).toString('hex')}`,
    surroundings: await surroundingsOf(servers),
  }
}

/**
 * The processes on the servers' ports, where they are on this machine, and this process, which
 * generates the load.
 */
async function surroundingsOf({
  redisUrl,
  mongodbUrl,
}: {
  redisUrl: string
  mongodbUrl: string
}): Promise<NamedProcess[]> {
  const found = await Promise.all([
    localProcess('redis', redisUrl, 6_379),
    localProcess('mongodb', mongodbUrl, 27_017),
  ])
  return [...found.flat(), { name: 'load', pid: process.pid }]
}

const LOCAL = /\/\/(?:[^@/]*@)?(?:127\.0\.0\.1|localhost)(?::(\d+))?(?:[/?]|$)/

async function localProcess(name: string, url: string, usualPort: number): Promise<NamedProcess[]> {
  const local = LOCAL.exec(url)
  const pid = local === null ? undefined : await listenerOf(Number(local[1] ?? usualPort))
  return pid === undefined ? [] : [{ name, pid }]
}
