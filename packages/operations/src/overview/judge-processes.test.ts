import assert from 'node:assert/strict'
import type { SeenProcess } from '@sluice/contract'
import { test } from 'vitest'
import type { Facts } from './finding.ts'
import { judge } from './verdict.ts'

const NOW = Date.parse('2024-05-01T09:30:00.000Z')
const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1_000).toISOString()

/**
 * A process that lived from and until so many seconds ago. One that was seen less than ten seconds
 * ago counts as alive.
 */
function lived(
  kind: SeenProcess['kind'],
  pid: number,
  from: number,
  until = 0,
  more: Partial<SeenProcess> = {},
) {
  const about = {
    id: `${kind}${pid}`,
    kind,
    pid,
    version: '1.0.0',
    host: 'here',
    startedAt: at(from),
  }
  return { ...about, seenMsAgo: until * 1_000, cpu: 0, memoryBytes: 0, ...more }
}

const API = lived('api', 1, 3_600)

function findingsOf(processes: SeenProcess[]): [string, string][] {
  const facts: Facts = {
    at: at(0),
    queued: [],
    paused: {},
    tenants: [],
    processes,
    redis: { usedBytes: 0, maxBytes: 0 },
  }
  return judge(facts).map(({ code, text }) => [code, text])
}

/**
 * Workers in one place, each of which lives 10 s and is replaced a second later; the last one died
 * so many seconds ago.
 */
function loopOf(deaths: number, last: number): SeenProcess[] {
  return Array.from({ length: deaths }, (_, place) => {
    const until = last + 11 * (deaths - 1 - place)
    return lived('worker', 10 + place, until + 10, until)
  })
}

test('a worker that is killed again and again is one finding, also beside a healthy one', () => {
  const text = 'Workers died 7 times in 66 s; the last one lived 10 s, until 11 s ago'
  for (const others of [[], [lived('worker', 3, 3_600)]])
    assert.deepEqual(findingsOf([API, ...others, ...loopOf(7, 11), lived('worker', 20, 10)]), [
      ['crash_loop', text],
    ])
  const codes = findingsOf([API, ...loopOf(3, 40)]).map(([code]) => code)
  assert.deepEqual(
    codes,
    ['process_missing', 'crash_loop'],
    'none lives: it waits for its next start',
  )
  const waiting = findingsOf([API, lived('worker', 3, 3_600), ...loopOf(3, 40)])
  assert.deepEqual(waiting, [
    ['crash_loop', 'Workers died 3 times in 22 s; the last one lived 10 s, until 40 s ago'],
  ])
})

test('the verdict stays the same while a loop goes on, and is well soon after its end', () => {
  const codesAt = (lastDeath: number) =>
    findingsOf([API, ...loopOf(5, lastDeath), lived('worker', 20, lastDeath - 1)]).map(
      ([code]) => code,
    )
  for (const lastDeath of [11, 12, 13]) assert.deepEqual(codesAt(lastDeath), ['crash_loop'])
  assert.deepEqual(codesAt(14), [])
})

test('three workers that are killed together and replaced are no loop', () => {
  const dead = [1, 2, 3].map((pid) => lived('worker', pid, 3_600, 30 + pid))
  assert.deepEqual(
    findingsOf([API, ...dead, ...[4, 5, 6].map((pid) => lived('worker', pid, 30))]),
    [],
  )
})

test('a process that died is named, not one that died and was replaced before', () => {
  const dead = [lived('worker', 2, 3_600, 300), lived('worker', 3, 3_600, 40)]
  const text = 'The worker here:3 has shown no sign of life for 40 s'
  assert.deepEqual(findingsOf([API, ...dead, lived('worker', 4, 290)]), [['process_gone', text]])
})

test('several that are gone are one finding', () => {
  const dead = [2, 3, 4].map((pid) => lived('worker', pid, 3_600, 10 * pid))
  const text = '3 workers have shown no sign of life, the last one (here:2) for 20 s'
  assert.deepEqual(findingsOf([API, ...dead, lived('worker', 5, 3_000)]), [['process_gone', text]])
})

test('a clock that is wrong by half a minute is named', () => {
  const worker = lived('worker', 2, 60)
  assert.deepEqual(findingsOf([{ ...API, clockAheadMs: 29_000 }, worker]), [])
  const ahead = { ...worker, clockAheadMs: 600_000 }
  const text = 'The clock of the worker here:2 is 10 min ahead of Redis’s: synchronize them (NTP)'
  assert.deepEqual(findingsOf([API, ahead]), [['clock_wrong', text]])
  const [[, both = ''] = []] = findingsOf([{ ...API, clockAheadMs: -31_000 }, ahead])
  assert.match(both, /^The clock of the worker here:2 .*, and 1 more differ by 30 s at least: /)
  const [[, behind = ''] = []] = findingsOf([{ ...API, clockAheadMs: -31_000 }, worker])
  assert.match(behind, /^The clock of the API here:1 is 31 s behind Redis’s: /)
})
