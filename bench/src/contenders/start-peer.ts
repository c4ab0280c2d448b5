import { fileURLToPath } from 'node:url'
import { freePort, type LaunchedProcess } from '@sluice/local'
import type { Bench } from '../bench.ts'
import { closedLoop } from '../closed-loop.ts'
import type { HttpContender } from './contender.ts'
import { databaseUrl, dropDatabase } from './database.ts'
import { forgetQueue } from './forget-queue.ts'
import { launchContender } from './launch-contender.ts'

/** The programs of each peer, by role; the first one receives requests. */
const PEERS = {
  textbook: { api: 'textbook-api', worker: 'textbook-worker' },
  upserts: { api: 'upserts' },
  'bulk-write': { api: 'bulk-write' },
}

/**
 * A peer that needs minutes for a round gets less of it, since its rate and its times show as well
 * in part of it.
 */
const ROUND_SECONDS = 15

export type PeerName = keyof typeof PEERS

/** Starts a peer of Sluice, with a database and a queue of its own. */
export async function startPeer(bench: Bench, name: PeerName): Promise<HttpContender> {
  const queue = `${bench.run}-${name}`
  const port = await freePort()
  const mongodbUrl = databaseUrl(bench.mongodbUrl, queue)
  const env = {
    REDIS_URL: bench.redisUrl,
    MONGODB_URL: mongodbUrl,
    QUEUE: queue,
    KEY: 'a-key',
    PORT: String(port),
  }
  const programs = Object.entries(PEERS[name])
  await using started = new AsyncDisposableStack()
  started.defer(() => forgetQueue(bench.redisUrl, queue))
  started.defer(() => dropDatabase(bench, mongodbUrl))
  const processes = []
  for (const [role, program] of programs) {
    const main = fileURLToPath(import.meta.resolve(`../peers/${program}.program.ts`))
    const launched: LaunchedProcess = await launchContender({
      main,
      name: program,
      folder: bench.folder,
      env,
    })
    started.defer(() => launched.stop())
    processes.push({ name: role, pid: launched.pid })
  }
  const urls = [`http://127.0.0.1:${port}`]
  const parts = started.move()
  return {
    name,
    urls,
    key: env.KEY,
    processes,
    run: (threads, callers) =>
      closedLoop(urls, env.KEY, threads, callers, { seconds: ROUND_SECONDS }),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
