import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type Engine, NoServer, type Provider, UnusableData, useFirstProvider } from './provider.ts'

const { signal } = new AbortController()

function engine(title: string): Engine {
  return {
    title,
    folder: title,
    command: () => ({ command: title, args: [] }),
    isReady: async () => true,
  }
}

function open(title: string): Provider {
  return { name: title, find: async () => engine(title) }
}

const closed: Provider = { name: 'closed', find: () => Promise.reject(new Error('not there')) }
const broken: Provider = { name: 'broken', find: () => Promise.reject(new Error('no network')) }

test('the first provider with an engine is used, and no later one is tried', async () => {
  const later: Provider = { name: 'later', find: () => assert.fail('tried') }
  assert.equal(
    await useFirstProvider(
      'Redis',
      [closed, broken, open('docker'), later],
      async ({ title }) => title,
      signal,
    ),
    'docker',
  )
})

test('after an engine that does not start, the next provider is tried', async () => {
  const use = async ({ title }: Engine) =>
    title === 'bad' ? Promise.reject(new Error('does not start')) : title
  assert.equal(await useFirstProvider('Redis', [open('bad'), open('good')], use, signal), 'good')
})

test('an engine that does not start on its own data is not replaced by one without data', async () => {
  const use = () => Promise.reject(new UnusableData('torn'))
  await assert.rejects(
    useFirstProvider('Redis', [open('bad'), open('good')], use, signal),
    UnusableData,
  )
})

test('without an engine the message names the reason of each provider, and what to do', async () => {
  await assert.rejects(
    useFirstProvider('Redis', [closed, broken], async () => {}, signal),
    (error) => {
      assert.ok(error instanceof NoServer)
      assert.match(
        error.message,
        /closed: not there\n- broken: no network\nInstall one of them, or .* REDIS_URL and MONGODB_URL\.$/,
      )
      return true
    },
  )
})

test('an abort ends the search', async () => {
  const reason = new Error('stopped')
  const search = useFirstProvider(
    'Redis',
    [broken, open('docker')],
    async () => {},
    AbortSignal.abort(reason),
  )
  await assert.rejects(search, reason)
})
