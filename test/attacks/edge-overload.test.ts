import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { createCaller, type Reply } from '../e2e/support/caller.ts'
import { problemIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { until } from '../faults/until.ts'
import { startSluice } from '../start-sluice.ts'

test('POSTs are refused while the event loop lags, and only then', async (t) => {
  const sluice = await startSluice(t, { settings: { MAX_LOOP_DELAY_MS: '250' } })
  const caller = createCaller(sluice)
  const post = () => caller.post(someThread())
  await until('a post is stored', 5_000, async () => (await post()).status === 200)
  sluice.api.signal('SIGSTOP')
  await pause(1_000)
  sluice.api.signal('SIGCONT')
  const refused = await until<Reply | undefined>('a post is refused', 3_000, async () => {
    const reply = await post()
    return reply.status === 503 ? reply : undefined
  })
  assert.ok(refused)
  problemIn(refused, 503, 'overloaded')
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await caller.get('/limits')).status, 200)
  await until('a post is stored again', 5_000, async () => (await post()).status === 200)
})
