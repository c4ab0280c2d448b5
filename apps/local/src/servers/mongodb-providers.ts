// Finds or installs a MongoDB on this machine, and makes it the only node of a replica set.
import { join } from 'node:path'
import { type Db, type Document, MongoClient, MongoServerError } from 'mongodb'
import { dockerEngine, type Image } from './docker.ts'
import { installedEngine, succeeds } from './machine.ts'
import type { Engine, Location, Machine, Provider } from './provider.ts'
import { secantusVersion, type Wheels } from './wheels.ts'

const oldest = '4.4'
const replicaSetName = 'sluice'

/** The providers of a MongoDB on this machine, in the order in which they are tried. */
export function mongodbProviders(machine: Machine, wheels: Wheels): readonly Provider[] {
  return [
    {
      name: '`mongod` on the PATH',
      find: () => installedEngine(['mongod'], oldest, machine.path, mongodEngine),
    },
    {
      name: 'Docker',
      find: () =>
        dockerEngine(image, machine, (location) =>
          isReplicaSetReady(mongodbUrl(location), imageHost),
        ),
    },
    { name: 'SecantusDB from PyPI', find: () => fromWheels(wheels) },
  ]
}

/**
 * Returns the server's URL. It has `directConnection`, because the node may know itself by another
 * address.
 */
export function mongodbUrl({ port }: Pick<Location, 'port'>): string {
  return `mongodb://127.0.0.1:${port}/sluice?directConnection=true`
}

function mongodEngine(title: string, folder: string, program: string): Engine {
  return {
    title,
    folder,
    command: (location) => ({
      command: program,
      args: [
        ...['--bind_ip', '127.0.0.1', '--port', String(location.port)],
        ...['--dbpath', location.folder, ...asReplicaSet],
        ...(location.testCommands ? ['--setParameter', 'enableTestCommands=1'] : []),
      ],
    }),
    isReady: (location) => isReplicaSetReady(mongodbUrl(location), `127.0.0.1:${location.port}`),
  }
}

async function fromWheels(wheels: Wheels) {
  const folder = await wheels()
  return {
    title: `SecantusDB ${secantusVersion}`,
    folder: 'secantusdb',
    note: "SecantusDB is an emulator that speaks MongoDB's protocol: good for trying Sluice out; use MongoDB itself in production",
    command: (location: Location) => ({
      command: join(folder, 'bin/python3'),
      args: secantusArgs(location),
    }),
    maxBytes: SECANTUS_BYTES,
    isReady: (location: Location) =>
      succeeds(askMongodb(mongodbUrl(location), (admin) => admin.command({ ping: 1 }))),
  }
}

/**
 * The most memory that SecantusDB may use. Without this bound, it grew to 21 GB under load,
 * although its cache is bounded.
 */
const SECANTUS_BYTES = 4 * 1024 ** 3

/**
 * Starts SecantusDB with `--standalone`. Drivers number their writes to a replica set, and
 * SecantusDB would search all earlier writes for each number.
 */
function secantusArgs({ port, folder, durable, testCommands }: Location): readonly string[] {
  const address = ['--host', '127.0.0.1', '--port', String(port), '--storage-path', folder]
  const options = [
    ...(durable ? ['--sync-on-commit'] : []),
    ...(testCommands ? ['--enable-test-commands'] : []),
  ]
  return ['-m', 'secantus', '--standalone', ...address, ...options]
}

/**
 * A replica set with one node, so that majority write concern and the journal work as in
 * production.
 */
const asReplicaSet = ['--replSet', replicaSetName]

const image: Image = {
  name: 'mongo:8.0',
  port: 27017,
  data: '/data/db',
  args: ['mongod', '--bind_ip_all', ...asReplicaSet],
}
/** The address by which the server in the container knows itself. */
const imageHost = `127.0.0.1:${image.port}`

const notYetInitialized = 94

/**
 * Returns whether the mongod accepts writes as the only node of its replica set. Forms the set if
 * needed. Call it until it returns true.
 */
function isReplicaSetReady(url: string, host: string): Promise<boolean> {
  return askMongodb(url, (admin) => becomePrimary(admin, host)).catch(() => false)
}

/**
 * Forms the replica set, or updates the node's address in it. Returns true only if the node was
 * already the primary.
 */
export async function becomePrimary(admin: Pick<Db, 'command'>, host: string): Promise<boolean> {
  const hello = await admin.command({ hello: 1 })
  if (hello.isWritablePrimary === true && hello.me === host) return true
  const { config }: Document = await admin.command({ replSetGetConfig: 1 }).catch((error) => {
    if (error instanceof MongoServerError && error.code === notYetInitialized) return {}
    throw error
  })
  if (config === undefined) {
    await admin.command({ replSetInitiate: { _id: replicaSetName, members: [{ _id: 0, host }] } })
  } else if (config.members[0]?.host !== host) {
    const moved = {
      ...config,
      version: config.version + 1,
      members: [{ ...config.members[0], host }],
    }
    await admin.command({ replSetReconfig: moved, force: true })
  }
  return false
}

/**
 * Runs `ask` on the `admin` database of a MongoDB. Throws if it does not answer within `withinMs`
 * milliseconds.
 */
async function askMongodb<T>(
  url: string,
  ask: (admin: Db) => Promise<T>,
  withinMs = 300,
): Promise<T> {
  const client = new MongoClient(url, {
    serverSelectionTimeoutMS: withinMs,
    connectTimeoutMS: withinMs,
  })
  try {
    await client.connect()
    return await ask(client.db('admin'))
  } finally {
    await client.close()
  }
}

/** A server that the environment names may be far away or busy, so it gets more time. */
const NAMED_ANSWERS_MS = 5_000

/**
 * Resolves if a MongoDB at this URL answers within five seconds and accepts the URL's user. Rejects
 * with the reason.
 */
export async function askNamedMongodb(url: string): Promise<void> {
  await askMongodb(url, (admin) => admin.command({ ping: 1 }), NAMED_ANSWERS_MS)
}
