import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'vitest'

const program = new URL('run-until-stopped.program.ts', import.meta.url)

/** Runs the program; `over` has its exit code and the messages that it logged, in order. */
function run(t: TestContext, behaviour: string, graceSeconds = 20) {
  const child = fork(program, [behaviour, String(graceSeconds)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  t.onTestFinished(() => void child.kill('SIGKILL'))
  const output = child.stdout === null ? Promise.resolve('') : text(child.stdout)
  const over = Promise.all([once(child, 'exit'), output]).then(([[code], lines]) => ({
    code,
    events: lines
      .trim()
      .split('\n')
      .map((line): string => JSON.parse(line).msg),
  }))
  return { child, over }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const [message] = await once(child, 'message')
  return message
}

const RELEASED = ['process.stopping', 'released.second', 'released.first', 'process.stopped']

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} stops in order: last acquired, first released, exit 0`, async (t) => {
    const { child, over } = run(t, 'orderly')
    assert.deepEqual(await nextMessage(child), { ready: true })
    child.kill(signal)
    assert.deepEqual(await over, { code: 0, events: ['process.started', ...RELEASED] })
  })
}

test('a parent that exits stops its child', async (t) => {
  const { child, over } = run(t, 'orderly')
  await nextMessage(child)
  child.disconnect()
  assert.deepEqual(await over, { code: 0, events: ['process.started', ...RELEASED] })
})

test('a second stop changes nothing', async (t) => {
  const { child, over } = run(t, 'orderly')
  await nextMessage(child)
  child.kill('SIGTERM')
  child.kill('SIGINT')
  child.disconnect()
  assert.deepEqual(await over, { code: 0, events: ['process.started', ...RELEASED] })
})

test('a stop during the start releases what the start acquired afterwards', async (t) => {
  const { child, over } = run(t, 'slow start')
  assert.equal(await nextMessage(child), 'starting')
  child.kill('SIGTERM')
  assert.deepEqual(await over, { code: 0, events: RELEASED })
})

test('a process that stops knows how much of its grace time is left, and never less than nothing', async (t) => {
  const { child, over } = run(t, 'kept time')
  await nextMessage(child)
  child.kill('SIGTERM')
  assert.equal((await over).events[2], 'true, 0')
})

test('a start that gives up because of the stop is an orderly stop', async (t) => {
  const { child, over } = run(t, 'abandoned start')
  await nextMessage(child)
  child.kill('SIGTERM')
  const { code, events } = await over
  assert.equal(code, 0)
  assert.deepEqual(events, ['process.stopping', 'process.start_abandoned', ...RELEASED.slice(1)])
})

test('a start that fails releases its resources and exits 1', async (t) => {
  const { code, events } = await run(t, 'failing start').over
  assert.equal(code, 1)
  assert.deepEqual(events, ['process.start_failed', ...RELEASED])
})

test('a release that fails does not keep the others from being released', async (t) => {
  const { child, over } = run(t, 'failing release')
  await nextMessage(child)
  child.kill('SIGTERM')
  const { code, events } = await over
  assert.equal(code, 1)
  assert.deepEqual(events, [
    'process.started',
    'process.stopping',
    'resource.release_failed',
    ...RELEASED.slice(1),
  ])
})

test('a process that exceeds its grace time logs that and exits 1', async (t) => {
  const { child, over } = run(t, 'hanging release', 0.05)
  await nextMessage(child)
  child.kill('SIGTERM')
  const { code, events } = await over
  assert.equal(code, 1)
  assert.deepEqual(events, [
    'process.started',
    'process.stopping',
    'hanging',
    'process.stop_overran',
  ])
})

for (const behaviour of ['uncaught error', 'unhandled rejection']) {
  test(`an ${behaviour} is logged and exits 1`, async (t) => {
    const { code, events } = await run(t, behaviour).over
    assert.equal(code, 1)
    assert.equal(events.at(-1), 'process.crashed')
  })
}
