import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { type Document, MongoClient } from 'mongodb'

/** The machine, the servers and the versions behind the figures. */
export interface Surroundings {
  cpu: string
  cores: number
  memoryGb: number
  platform: string
  node: string
  /** Versions of the libraries on the hot path. */
  libraries: Record<string, string>
  /** The commit of this repository; with `+` where files differ from it. */
  commit: string
  redis: string
  /** The server's own description, which distinguishes an emulator from a MongoDB. */
  mongodb: Document
  /** The server's storage engine keeps data on disk. */
  onDisk: boolean
}

const LIBRARIES = ['bullmq', 'express', 'ioredis', 'mongodb', 'undici']
const run = promisify(execFile)

/** Describes the surroundings of a benchmark. */
export async function describeSurroundings(servers: {
  redisUrl: string
  mongodbUrl: string
}): Promise<Surroundings> {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    libraries: Object.fromEntries(
      await Promise.all(LIBRARIES.map(async (name) => [name, await versionOf(name)])),
    ),
    commit: await commit(),
    redis: await redisVersion(servers.redisUrl),
    ...(await describeServer(servers.mongodbUrl)),
  }
}

/** One line for people. */
export function describeMongodb({ mongodb, onDisk }: Surroundings): string {
  const { version, gitVersion, ...others } = mongodb
  const names = Object.entries(others).filter(([name]) => name.endsWith('Version'))
  const about = isEmulator(mongodb)
    ? [kindOfServer({ mongodb, onDisk }), ...names.map(([name, value]) => `${name} ${value}`)].join(
        ', ',
      )
    : `build ${gitVersion}`
  return `MongoDB ${version} (${about})`
}

/** MongoDB itself, or a kind of emulator. */
export type KindOfServer = 'MongoDB' | 'emulator on disk' | 'emulator in memory'

/** Says whether figures come from MongoDB itself, or from which kind of emulator. */
export function kindOfServer({
  mongodb,
  onDisk,
}: Pick<Surroundings, 'mongodb' | 'onDisk'>): KindOfServer {
  return isEmulator(mongodb) ? `emulator ${onDisk ? 'on disk' : 'in memory'}` : 'MongoDB'
}

/** A server without the commit that it was built from is no MongoDB. */
function isEmulator({ gitVersion }: Document): boolean {
  return typeof gitVersion !== 'string' || /^0*$/.test(gitVersion)
}

async function describeServer(url: string): Promise<Pick<Surroundings, 'mongodb' | 'onDisk'>> {
  const client = new MongoClient(url)
  try {
    const admin = client.db().admin()
    const mongodb = await admin.command({ buildInfo: 1 })
    // MongoDB itself may refuse to show its status to this user.
    const { storageEngine } = await admin
      .command({ serverStatus: 1 })
      .catch(() => ({ storageEngine: undefined }))
    return { mongodb, onDisk: storageEngine?.persistent === true }
  } finally {
    await client.close()
  }
}

async function redisVersion(url: string): Promise<string> {
  const redis = new Redis(url)
  const info = await redis.info('server')
  redis.disconnect()
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
  const valkey = field('valkey_version')
  return valkey === undefined ? `Redis ${field('redis_version')}` : `Valkey ${valkey}`
}

async function versionOf(library: string): Promise<string> {
  const { version } = JSON.parse(
    await readFile(new URL(`../../node_modules/${library}/package.json`, import.meta.url), 'utf8'),
  )
  return version
}

async function commit(): Promise<string> {
  const git = async (...args: string[]) =>
    (await run('git', args, { cwd: import.meta.dirname })).stdout.trim()
  try {
    return `${await git('rev-parse', '--short', 'HEAD')}${(await git('status', '--porcelain')) === '' ? '' : '+'}`
  } catch {
    return 'unknown'
  }
}
