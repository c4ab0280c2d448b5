// Redis with replicas of a test's own, under Sentinels or as a cluster, on real processes.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@sluice/local'
import { requiredUrl, type TestScope } from '@sluice/test-support'
import { Redis } from 'ioredis'
import { FAKETIME } from '../runner/programs.ts'
import { createTcpProxy, type Gate } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** A server that a test may kill, freeze and thaw. */
export interface RedisNode {
  port: number
  signal(name: NodeJS.Signals): void
  /** Sends one command on a connection of its own. */
  send(command: string, ...args: (string | number)[]): Promise<unknown>
}

export interface Topology {
  /** For `REDIS_URL`. */
  url: string
  /** The servers with data: the primary of the queue first. */
  nodes: readonly [RedisNode, ...RedisNode[]]
  /**
   * From now on withholds everything between the first primary and its replicas and Sentinels, and
   * nothing else.
   */
  cutReplicas(): void
  /** Resolves to the node, other than this one, that has become the primary of the key. */
  primaryAfter(old: RedisNode): Promise<RedisNode>
}

/** A primary that is silent for this time counts as gone, in ms. */
const DOWN_AFTER_MS = 2_000

/**
 * The program of the Redis that the tests share, if it runs on this machine: Redis and Valkey are
 * Sentinel, too.
 */
export async function redisProgram(): Promise<string | undefined> {
  const redis = new Redis(requiredUrl('REDIS_URL'))
  const info = await redis.info('server')
  redis.disconnect()
  const program = /^executable:(.+?)\r?$/m.exec(info)?.[1]
  return program === undefined
    ? undefined
    : access(program).then(
        () => program,
        () => undefined,
      )
}

/** The variables of a process whose clock is behind by so many seconds. */
export const clockBehind = (seconds: number) => ({
  LD_PRELOAD: FAKETIME,
  FAKETIME: `-${seconds}s`,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})

/**
 * Whether Debian's libfaketime is installed and shifts the clock of this program: it hangs one with
 * a shared jemalloc.
 */
export function canShiftClock(program = ''): boolean {
  const options = { env: clockBehind(1), timeout: 5_000, stdio: 'ignore' } as const
  return existsSync(FAKETIME) && spawnSync(program, ['--version'], options).status === 0
}

type StartNode = (args: readonly string[], env?: Record<string, string>) => Promise<RedisNode>

/** Makes a function that starts servers, each in a folder of its own, until the test ends. */
export async function createStartNode(t: TestScope, program: string): Promise<StartNode> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return async (args, env = {}) => {
    const port = await freePort()
    const data = await mkdtemp(join(folder, `${port}-`))
    const config = join(data, 'redis.conf')
    await writeFile(config, '')
    const all = [
      config,
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      data,
      '--save',
      '',
      ...args,
    ]
    const child = spawn(program, all, { stdio: 'ignore', env: { PATH: process.env.PATH, ...env } })
    t.onTestFinished(
      () =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve()
          child.once('exit', () => resolve())
          child.kill('SIGKILL')
        }),
    )
    const node: RedisNode = {
      port,
      signal: (name) => void child.kill(name),
      async send(command, ...rest) {
        const redis = new Redis({
          port,
          retryStrategy: () => null,
          commandTimeout: 1_000,
          connectTimeout: 1_000,
        })
        redis.on('error', () => {})
        return redis.call(command, ...rest).finally(() => redis.disconnect())
      },
    }
    await until(`a server on port ${port}`, () =>
      node.send('PING').then(
        () => true,
        () => false,
      ),
    )
    return node
  }
}

const NOTHING = Buffer.alloc(0)

/** Opens a proxy before a server, which can cut it off from all but its clients. */
async function openPeerProxy(t: TestScope): Promise<PeerProxy> {
  const port = await freePort()
  let isCut = false
  const proxy = createTcpProxy(port, (): Gate => {
    let isPeer = false
    return {
      toServer(chunk) {
        // A Sentinel names its connections, and publishes itself. Clients may send its mere name in
        // a value.
        isPeer ||= /REPLCONF|PSYNC|__sentinel__:hello|sentinel-[0-9a-f]{8}-/i.test(
          chunk.toString('latin1'),
        )
        return isCut && isPeer ? NOTHING : chunk
      },
      toClient: (chunk) => (isCut && isPeer ? NOTHING : chunk),
    }
  })
  t.onTestFinished(proxy.shut)
  return {
    port,
    open: proxy.open,
    cut() {
      isCut = true
    },
  }
}

interface PeerProxy {
  port: number
  open(serverPort: number): Promise<void>
  cut(): void
}

const LIKE_START = [
  '--appendonly',
  'yes',
  '--maxmemory-policy',
  'noeviction',
  '--repl-diskless-sync-delay',
  '0',
]

/** Starts three Sentinels, a primary and two replicas. */
export async function startSentinels(
  t: TestScope,
  program: string,
  replicaEnv = {},
): Promise<Topology> {
  const start = await createStartNode(t, program)
  const primary = await start(LIKE_START)
  const proxy = await openPeerProxy(t)
  await proxy.open(primary.port)
  const follow = ['--replicaof', `127.0.0.1 ${proxy.port}`]
  const replicas = await Promise.all(
    [1, 2].map(() => start([...LIKE_START, ...follow], replicaEnv)),
  )
  await until('two replicas that follow', async () => (await inSync(primary)) === 2)
  const sentinels = await Promise.all(
    [1, 2, 3].map(() =>
      start(['--sentinel', '--sentinel', 'monitor', 'main', '127.0.0.1', String(proxy.port), '2']),
    ),
  )
  for (const sentinel of sentinels) {
    await sentinel.send('SENTINEL', 'SET', 'main', 'down-after-milliseconds', DOWN_AFTER_MS)
    await sentinel.send('SENTINEL', 'SET', 'main', 'failover-timeout', 10_000)
  }
  for (const sentinel of sentinels)
    await until('Sentinels that know each other and the replicas', async () => {
      const [others, known] = await Promise.all([
        sentinel.send('SENTINEL', 'SENTINELS', 'main'),
        sentinel.send('SENTINEL', 'REPLICAS', 'main'),
      ])
      return lengthOf(others) === 2 && lengthOf(known) === 2
    })
  const nodes = [primary, ...replicas] as const
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/main`,
    nodes,
    cutReplicas: proxy.cut,
    primaryAfter: (old) =>
      until('another primary', async () => {
        const [first] = sentinels
        const address = await first
          ?.send('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')
          .catch(() => undefined)
        return nodes.find(
          (node) => node !== old && Array.isArray(address) && Number(address[1]) === node.port,
        )
      }),
  }
}

/** Where the header of a message on the bus of a cluster has the id of its sender. */
const SENDER = [40, 80] as const

/**
 * Opens a proxy before the bus port of a node. It withholds everything to and from nodes that are
 * cut off.
 */
async function openBusProxy(t: TestScope, isCutOff: (id: string | undefined) => boolean) {
  const node: { id?: string } = {}
  const port = await freePort()
  const proxy = createTcpProxy(port, (): Gate => {
    let sender: string | undefined
    const pass = (chunk: Buffer) => (isCutOff(sender) || isCutOff(node.id) ? NOTHING : chunk)
    return {
      toServer(chunk) {
        sender ??= chunk.toString('latin1', ...SENDER)
        return pass(chunk)
      },
      toClient: pass,
    }
  })
  t.onTestFinished(proxy.shut)
  return { node, port, open: proxy.open }
}

const SLOTS = 16_384

/** Starts a cluster of three primaries, with a replica each. */
export async function startCluster(
  t: TestScope,
  program: string,
  queue: string,
  replicaEnv = {},
): Promise<Topology> {
  const start = await createStartNode(t, program)
  const args = [
    ...LIKE_START,
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    String(DOWN_AFTER_MS),
  ]
  const cutOff = new Set<string>()
  const startNode = async (env?: Record<string, string>, own: readonly string[] = []) => {
    const bus = await openBusProxy(t, (id) => id !== undefined && cutOff.has(id))
    const port = await freePort()
    const ports = ['--cluster-port', String(port), '--cluster-announce-bus-port', String(bus.port)]
    const node = await start([...args, ...ports, ...own], env)
    await bus.open(port)
    bus.node.id = String(await node.send('CLUSTER', 'MYID'))
    return { id: bus.node.id, busPort: bus.port, ...node }
  }
  const startPrimary = async () => {
    const proxy = await openPeerProxy(t)
    const node = await startNode({}, ['--cluster-announce-port', String(proxy.port)])
    await proxy.open(node.port)
    return { ...node, proxy }
  }
  const primaries = await Promise.all([1, 2, 3].map(startPrimary))
  const replicas = await Promise.all([1, 2, 3].map(() => startNode(replicaEnv)))
  const nodes = [...primaries, ...replicas]
  const [first] = primaries
  if (first === undefined) throw new Error('no node')
  for (const [at, node] of primaries.entries()) {
    await node.send('CLUSTER', 'SET-CONFIG-EPOCH', at + 1)
    const range = [Math.ceil((at * SLOTS) / 3), Math.ceil(((at + 1) * SLOTS) / 3) - 1]
    await node.send('CLUSTER', 'ADDSLOTSRANGE', ...range)
  }
  for (const node of nodes)
    if (node !== first) await node.send('CLUSTER', 'MEET', '127.0.0.1', first.port, first.busPort)
  const knows = async (node: RedisNode) =>
    String(await node.send('CLUSTER', 'NODES')).split('\n').length > nodes.length
  for (const node of nodes) await until('nodes that know each other', () => knows(node))
  for (const [at, replica] of replicas.entries()) {
    const { id = '' } = primaries[at] ?? {}
    await until('a replica that follows', () =>
      replica.send('CLUSTER', 'REPLICATE', id).catch(() => false),
    )
  }
  for (const primary of primaries)
    await until('a replica in sync', async () => (await inSync(primary)) === 1)
  for (const node of nodes)
    await until('a cluster that is up', async () =>
      /state:ok/.test(String(await node.send('CLUSTER', 'INFO'))),
    )
  const owns = (node: RedisNode) =>
    node.send('GET', `{${queue}}`).then(
      () => true,
      () => false,
    )
  const owner = await until('the owner', async () => {
    for (const node of primaries) if (await owns(node)) return node
    return undefined
  })
  // The seeds do not own the slot.
  const seeds = primaries.filter((node) => node !== owner)
  return {
    url: `redis+cluster://${seeds.map(({ proxy: { port } }) => `127.0.0.1:${port}`).join(',')}`,
    nodes: [owner, ...nodes.filter((node) => node !== owner)],
    cutReplicas() {
      owner.proxy.cut()
      cutOff.add(owner.id)
    },
    primaryAfter: (old) =>
      until('another owner', async () => {
        for (const node of nodes) if (node !== old && (await owns(node))) return node
        return undefined
      }),
  }
}

/** Resolves when all replicas of a primary have what it has now. */
export async function replicated(primary: RedisNode): Promise<void> {
  const read = async () => String(await primary.send('INFO', 'replication'))
  const wanted = Number(/master_repl_offset:(\d+)/.exec(await read())?.[1])
  await until('replicas that have everything', async () =>
    Array.from((await read()).matchAll(/,offset=(\d+)/g)).every(
      ([, offset]) => Number(offset) >= wanted,
    ),
  )
}

/** Returns how many replicas have all that the primary has. */
async function inSync(primary: RedisNode): Promise<number> {
  return String(await primary.send('INFO', 'replication')).match(/state=online/g)?.length ?? 0
}

const lengthOf = (reply: unknown) => (Array.isArray(reply) ? reply.length : 0)
