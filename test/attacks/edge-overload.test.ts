import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { createCaller, type Reply } from '../e2e/support/caller.ts'
import { problemIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('POSTs are refused while the event loop lags, and only then', async (t) => {
  const sluice = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '250' } })
  const caller = createCaller(sluice)
  const post = () => caller.post(someThread())
  await until('a post is stored', async () => (await post()).status === 200)
  // The delay counts from the end of its second on, for a second, so posts are sent all the time in between.
  const refused = await until<Reply | undefined>('a post is refused', async () => {
    sluice.api.signal('SIGSTOP')
    await pause(1_200)
    sluice.api.signal('SIGCONT')
    const posts = Array.from({ length: 15 }, (_, at) => pause(at * 100).then(post))
    return (await Promise.all(posts)).find(({ status }) => status === 503)
  })
  assert.ok(refused)
  problemIn(refused, 503, 'overloaded')
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await caller.get('/limits')).status, 200)
  await until('a post is stored again', async () => (await post()).status === 200)
})
