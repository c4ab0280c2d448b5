import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NoServer } from '@sluice/local'
import { requiredUrl } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { imageOf } from './containers.ts'
import { type Containers, openTestServers } from './open-test-servers.ts'

const { PATH, XDG_CACHE_HOME } = process.env
const named = { REDIS_URL: requiredUrl('REDIS_URL'), MONGODB_URL: requiredUrl('MONGODB_URL') }

/**
 * Stands for a container engine: its containers are the servers that this run has anyway, and it
 * notes what is done with them.
 */
function engine(broken: readonly string[] = []) {
  const done: string[] = []
  const start = (variable: keyof Containers) => async () => {
    if (broken.includes(variable)) throw new Error('no such image')
    done.push(`start ${variable}`)
    return { url: named[variable], stop: async () => void done.push(`stop ${variable}`) }
  }
  const containers: Containers = {
    REDIS_URL: start('REDIS_URL'),
    MONGODB_URL: start('MONGODB_URL'),
  }
  return { done, findContainers: async () => containers }
}

async function open(
  t: TestContext,
  env: Record<string, string | undefined>,
  findContainers: () => Promise<Containers | undefined>,
) {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-servers-'))
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const lines: string[] = []
  const servers = await openTestServers({
    dataDir,
    env,
    say: (line) => lines.push(line),
    findContainers,
  })
  return { servers, lines }
}

test('servers that the environment names are used, and no container engine is asked', async (t) => {
  const { servers } = await open(t, named, () => assert.fail('asked'))
  assert.deepEqual([servers.redisUrl, servers.mongodbUrl], [named.REDIS_URL, named.MONGODB_URL])
  await servers.stop()
})

test('if a container engine answers, both servers are containers, which stop at the end', async (t) => {
  const { done, findContainers } = engine()
  const { servers } = await open(t, {}, findContainers)
  assert.deepEqual([servers.redisUrl, servers.mongodbUrl], [named.REDIS_URL, named.MONGODB_URL])
  assert.deepEqual(done, ['start REDIS_URL', 'start MONGODB_URL'])
  await servers.stop()
  assert.deepEqual(done.slice(2), ['stop REDIS_URL', 'stop MONGODB_URL'])
})

test('only the server that the environment does not name is a container', async (t) => {
  const { done, findContainers } = engine()
  const { servers } = await open(t, { REDIS_URL: named.REDIS_URL }, findContainers)
  await servers.stop()
  assert.deepEqual(done, ['start MONGODB_URL', 'stop MONGODB_URL'])
})

test('without a container engine a program of this machine is started', async (t) => {
  const { servers } = await open(
    t,
    { PATH, XDG_CACHE_HOME, MONGODB_URL: named.MONGODB_URL },
    async () => undefined,
  )
  t.onTestFinished(() => servers.stop())
  assert.notEqual(servers.redisUrl, named.REDIS_URL)
})

test('if a container does not start, a program replaces it, and a line gives the reason', async (t) => {
  const { findContainers } = engine(['REDIS_URL'])
  const { servers, lines } = await open(
    t,
    { PATH, XDG_CACHE_HOME, MONGODB_URL: named.MONGODB_URL },
    findContainers,
  )
  t.onTestFinished(() => servers.stop())
  assert.notEqual(servers.redisUrl, named.REDIS_URL)
  assert.match(lines.join('\n'), /^REDIS_URL: no container started \(Error: no such image\)$/m)
})

test('containers stop if the other server cannot be opened', async (t) => {
  const { done, findContainers } = engine()
  await assert.rejects(open(t, { REDIS_URL: 'redis://127.0.0.1:1' }, findContainers), NoServer)
  assert.deepEqual(done, ['start MONGODB_URL', 'stop MONGODB_URL'])
})

test('the images are the pinned ones of docker-compose.yml', () => {
  assert.match(imageOf('redis'), /^redis:\d/)
  assert.match(imageOf('mongo'), /^mongo:\d/)
  assert.throws(() => imageOf('api'), /names no image/)
})
