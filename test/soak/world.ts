// What a soak runs on: servers of its own, several replicas of each process, and a balancer before
// the API.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openServers } from '@sluice/local'
import type { StartedProcess, TestScope } from '@sluice/test-support'
import { type Backend, type Balancer, startBalancer } from '../support/balancer.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'

const APIS = 2
const WORKERS = 3
/** Short, so that callers whose jobs wait for a server go on to their next request. */
const SETTINGS = { WAIT_SECONDS: '8' }

export interface World {
  sluice: TestSluice
  balancer: Balancer
  apis: Backend[]
  workers: StartedProcess[]
  redis: PrivateServer
  mongodb: PrivateServer
  /** When Redis was killed, in the time of `performance.now()`. */
  redisKills: number[]
  /** What no promise allows, other than differences between ledger and store. */
  violations: string[]
}

export async function openWorld(t: TestScope): Promise<World> {
  const { redisUrl, mongodbUrl } = await openIdleServers(t)
  const [redis, mongodb] = await Promise.all([
    openPrivateServer('Redis', mongodbUrl),
    openPrivateServer('MongoDB', redisUrl),
  ])
  t.onTestFinished(() => Promise.all([redis.end(), mongodb.end()]))
  const urls = { redisUrl: redis.url, mongodbUrl: mongodb.url }
  const sluice = await startSluice(t, { workers: WORKERS, settings: SETTINGS, ...urls })
  const apis: Backend[] = [sluice]
  while (apis.length < APIS) apis.push(await sluice.startApi())
  const balancer = await startBalancer(t)
  await Promise.all(apis.map(balancer.add))
  const workers = [...sluice.workers]
  return { sluice, balancer, apis, workers, redis, mongodb, redisKills: [], violations: [] }
}

/** A private server needs a running one of the other kind. These stay idle. */
async function openIdleServers(t: TestScope) {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-soak-'))
  const servers = await openServers({ dataDir, durable: false, env: process.env, say: () => {} })
  t.onTestFinished(async () => {
    await servers.stop()
    await rm(dataDir, { recursive: true, force: true })
  })
  return servers
}

/** Notes each process that ended without having been told to. */
export function noteDeaths({ apis, workers, violations }: World): void {
  for (const { child, log } of [...apis.map(({ api }) => api), ...workers]) {
    if (child.exitCode === null && child.signalCode === null) continue
    violations.push(`a process died by itself: ${JSON.stringify(log.slice(-3))}`)
  }
}
