import assert from 'node:assert/strict'
import type { JobResult } from '@sluice/queue'
import { test } from 'vitest'
import type { OpenOperation, OperationPlace } from '../failed/operations.ts'
import { createTakeStep } from './steps.ts'

function openAt(kind: 'erase' | 'delete', after?: OperationPlace): OpenOperation {
  const counts = { examined: 0, done: 0, total: 0 }
  const times = { createdAt: '', changedAt: '' }
  const operation = { id: 'o', kind, state: 'active' as const, by: 'k', ...times, ...counts }
  return { operation, request: { filter: {} }, after }
}

/** Takes steps of an operation that examines two threads. Jobs have this result. */
function start(result?: JobResult) {
  const begunAt: (string | undefined)[] = []
  const deps = { enqueue: assert.fail, findResults: async () => new Map([['job', result]]) }
  const takeStep = createTakeStep(deps, async function* ({ after }) {
    begunAt.push(after?.id)
    yield { examined: 1, after: { id: 'first' } }
    yield { examined: 1, after: { id: 'second' } }
  })
  return { begunAt, takeStep }
}

test('steps go on, or begin again at the recorded place if another process has recorded it', async () => {
  const { begunAt, takeStep } = start()
  const first = await takeStep(openAt('erase'))
  const second = await takeStep(openAt('erase', first.after))
  assert.deepEqual([first.after?.id, second.after?.id, begunAt], ['first', 'second', [undefined]])
  await takeStep(openAt('erase', { at: 1, id: 'third' }))
  assert.deepEqual(begunAt, [undefined, 'third'])
})

test('the job of a process that is gone is counted before the steps begin again', async () => {
  const receipts = [{ source: { id: 's', outcome: 'deleted' as const, quotes: 3 } }, null]
  const place = { at: 1, id: 'third', job: 'job' }
  for (const [kind, counts] of [['erase', [0, 3, 1]] as const, ['delete', [2, 1, 1]] as const]) {
    const { begunAt, takeStep } = start({ receipts })
    const { examined, done, failed, after } = await takeStep(openAt(kind, place))
    assert.deepEqual([examined, done, failed], counts)
    assert.deepEqual([after?.id, after?.job, begunAt], ['third', undefined, []])
    await takeStep(openAt(kind, after))
    assert.deepEqual(begunAt, ['third'])
  }
})
