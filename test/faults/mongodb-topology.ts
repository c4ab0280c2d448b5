// Replica sets and sharded clusters of real MongoDB servers, in containers. Nothing else at hand
// can form them.
import { freePort } from '@sluice/local'
import type { TestScope } from '@sluice/test-support'
import { type Document, MongoClient } from 'mongodb'
import {
  GenericContainer,
  getContainerRuntimeClient,
  type StartedTestContainer,
} from 'testcontainers'
import { imageOf } from '../runner/containers.ts'
import { until } from '../support/until.ts'

/** Whether a container engine answers on this machine. */
export const hasContainers = await getContainerRuntimeClient().then(
  () => true,
  () => false,
)

interface Member {
  port: number
  container: StartedTestContainer
}

/** A cluster with a router, and its shards of one server each. */
export interface ShardedMongodb {
  url: string
  /** Runs a script in `mongosh` at the router. Throws if it fails. */
  runScript(script: string): Promise<void>
  shards: { freeze(): Promise<void>; thaw(): Promise<void> }[]
}

/**
 * Starts a server on the host's own network: members of a replica set must reach each other by the
 * names that clients use.
 */
async function startServer(
  t: TestScope,
  program: string,
  args: readonly string[],
): Promise<Member> {
  const port = await freePort()
  const command = [program, '--bind_ip', '127.0.0.1', '--port', String(port), ...args]
  const container = await new GenericContainer(imageOf('mongo'))
    .withNetworkMode('host')
    .withCommand(command)
    .start()
  t.onTestFinished(async () => void (await container.stop()))
  const client = new MongoClient(directUrl(port), { serverSelectionTimeoutMS: 1_000 })
  const answers = () => client.db('admin').command({ ping: 1 })
  await until(
    `${program} on port ${port} to answer`,
    async () => (await answers().catch(() => undefined)) !== undefined,
  )
  await client.close()
  return { port, container }
}

const directUrl = (port: number) => `mongodb://127.0.0.1:${port}/?directConnection=true`

async function askAdmin(url: string, command: Document): Promise<Document> {
  const client = await new MongoClient(url).connect()
  try {
    return await client.db('admin').command(command)
  } finally {
    await client.close()
  }
}

/** Starts the members of a replica set, and returns them once one of them is the primary. */
async function startSet(
  t: TestScope,
  name: string,
  size: number,
  args: readonly string[] = [],
): Promise<Member[]> {
  const starting = Array.from({ length: size }, () =>
    startServer(t, 'mongod', ['--replSet', name, ...args]),
  )
  const started = await Promise.all(starting)
  const [first] = started
  if (first === undefined) throw new Error('a replica set needs a member')
  const members = started.map(({ port }, _id) => ({ _id, host: `127.0.0.1:${port}` }))
  const settings = { electionTimeoutMillis: 2_000 }
  const configsvr = args.includes('--configsvr') && { configsvr: true }
  await askAdmin(directUrl(first.port), {
    replSetInitiate: { _id: name, members, settings, ...configsvr },
  })
  await until(`${name} to have a primary`, async () => {
    const { primary } = await askAdmin(directUrl(first.port), { hello: 1 })
    return primary !== undefined
  })
  return started
}

/** Three members, of which the test may kill one. */
export async function startReplicaSet(t: TestScope) {
  const members = await startSet(t, 'sluice', 3)
  const url = `mongodb://127.0.0.1:${members[0]?.port}/?replicaSet=sluice`
  const primaryPort = async () => Number((await askAdmin(url, { hello: 1 })).primary.split(':')[1])
  return {
    url,
    async stepDown() {
      await askAdmin(directUrl(await primaryPort()), { replSetStepDown: 10, force: true })
    },
    async killPrimary() {
      const killed = await primaryPort()
      for (const { port, container } of members)
        if (port === killed) await (await byEngine(container)).kill()
    },
  }
}

async function byEngine(started: StartedTestContainer) {
  const { container } = await getContainerRuntimeClient()
  return container.getById(started.getId())
}

/** Starts two shards, a server of their configuration, and a router. */
export async function startSharded(t: TestScope): Promise<ShardedMongodb> {
  const [config, one, two] = await Promise.all([
    startSet(t, 'config', 1, ['--configsvr']),
    startSet(t, 'one', 1, ['--shardsvr']),
    startSet(t, 'two', 1, ['--shardsvr']),
  ])
  const hostOf = (name: string, [member]: Member[]) => `${name}/127.0.0.1:${member?.port}`
  const router = await startServer(t, 'mongos', ['--configdb', hostOf('config', config)])
  const url = directUrl(router.port)
  for (const [name, members] of Object.entries({ one, two }))
    await askAdmin(url, { addShard: hostOf(name, members) })
  return {
    url,
    async runScript(script) {
      const shell = [
        'mongosh',
        '--quiet',
        '--port',
        String(router.port),
        'sluice',
        '--eval',
        script,
      ]
      const { exitCode, output } = await router.container.exec(shell)
      if (exitCode !== 0) throw new Error(`mongosh: ${output}`)
    },
    shards: [one, two].map(([member]) => ({
      freeze: async () => member && (await byEngine(member.container)).pause(),
      thaw: async () => member && (await byEngine(member.container)).unpause(),
    })),
  }
}
