// Which test files need Redis and MongoDB, and whether this machine can have both.
import { findProgram, findPython } from '@sluice/local'

/** The tests in these folders use servers. */
export const WITH_SERVERS = [
  'apps/cli',
  'apps/dashboard',
  'apps/local',
  'packages/credentials',
  'packages/operations',
  'packages/process/src/redis',
  'packages/boot',
  'packages/queue',
  'packages/store/src/read-source',
  ...['attacks', 'bench', 'e2e', 'faults', 'laws', 'overload', 'runner', 'soak', 'upgrade'].map(
    (kind) => `test/${kind}`,
  ),
]

/**
 * Returns why this machine can't have the servers of tests, for people: undefined if it has them,
 * or can get them without asking anybody. Installs and starts nothing.
 */
export async function lackOfServers(): Promise<string | undefined> {
  const { REDIS_URL, MONGODB_URL, PATH = '' } = process.env
  const has = (...names: string[]) => findProgram(names, PATH).then(Boolean, () => false)
  if (REDIS_URL && MONGODB_URL) return undefined
  if ((await has('redis-server', 'valkey-server')) && (await has('mongod'))) return undefined
  if (await has('docker', 'podman')) return undefined
  // The beginning of the run installs Python.
  if (process.getuid?.() === 0 && (await has('apt-get'))) return undefined
  return findPython(PATH).then(
    () => undefined,
    ({ message }: Error) =>
      `this machine ${message.replace(/: (.*)/, ' ($1)')}, or Docker, or servers that REDIS_URL and MONGODB_URL name`,
  )
}
