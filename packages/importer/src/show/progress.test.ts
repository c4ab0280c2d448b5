import assert from 'node:assert/strict'
import { PROBLEMS } from '@sluice/contract'
import type { ProgressStyle } from '@sluice/terminal'
import { test, vi } from 'vitest'
import { emptyTally, type Tally } from '../account/ledger.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { type ProgressState, showProgress } from './progress.ts'
import { type Summary, summaryLines, summaryObject } from './summary.ts'

/** What is shown after some seconds of an import that has read half of its input. */
function shownAfter(
  seconds: number,
  style: ProgressStyle,
  width = 200,
  threads: Partial<Tally['threads']> = {},
) {
  vi.useFakeTimers()
  try {
    const state: ProgressState = {
      bytes: { total: 2 ** 21, done: 0 },
      sorted: { total: 0, done: 0 },
      tally: emptyTally(),
    }
    Object.assign(state.tally.threads, threads)
    const written: string[] = []
    const printed: string[] = []
    const display = showProgress({
      style,
      state: () => state,
      stderr: { write: (text) => void written.push(text), columns: width },
      print: (line) => void printed.push(line),
    })
    for (let at = 0; at < seconds; at++) {
      state.bytes.done = Math.round((2 ** 20 * (at + 1)) / seconds)
      state.tally.threads.created += 100
      vi.advanceTimersByTime(1_000)
    }
    display[Symbol.dispose]()
    return { written, printed }
  } finally {
    vi.useRealTimers()
  }
}

test('a terminal gets one line that is drawn again, no wider than the terminal', () => {
  const { written, printed } = shownAfter(10, 'bar')
  assert.match(
    written.at(-2) ?? '',
    /\[K\[#{10}-{10}\] reading \d+ %, 2\.0 MiB, [\d.]+s left, \d+ threads\/s, 1,000 created$/,
  )
  assert.equal(written.at(-1), '\r\x1b[K')
  assert.deepEqual(printed, [])
  for (const text of shownAfter(10, 'bar', 40).written) assert.ok(text.length <= 40 + 4)
})

test('a terminal of 80 columns shows rejected records, and the bar has the rest of the line', () => {
  const { written } = shownAfter(10, 'bar', 80, {
    rejected: 12,
    updated: 1_000_000,
    unchanged: 1_000_000,
  })
  assert.match(written.at(-2) ?? '', /\[Kreading .* threads\/s, 12 rejected, 1,000 created/)
  assert.match(
    shownAfter(10, 'bar', 90, { rejected: 1 }).written.at(-2) ?? '',
    /\[K\[#+-+\] .*, 1 rejected, 1,000 created$/,
  )
})

test('without a terminal a plain line comes every few seconds, with --json a line of JSON, with --quiet nothing', () => {
  assert.deepEqual(
    shownAfter(12, 'lines').written.map((text) => text.endsWith('\n')),
    [true, true],
  )
  const { written, printed } = shownAfter(10, 'json')
  assert.deepEqual([written.length, printed.length], [0, 5])
  const { kind, bytes, threads } = JSON.parse(printed.at(-1) ?? '')
  assert.deepEqual([kind, bytes, threads.created], ['progress', 2 ** 20, 1_000])
  assert.deepEqual(shownAfter(10, 'none'), { written: [], printed: [] })
})

const some: Summary = {
  state: 'completed',
  isDryRun: false,
  inputs: [],
  unread: [],
  tally: emptyTally(),
  seconds: 125,
  bytes: 7,
}

test('the summary never says done when something failed', () => {
  for (const state of Object.keys(EXIT_CODES) as Summary['state'][]) {
    const text = summaryLines({ ...some, state }).join('\n')
    assert.equal(/done/i.test(text), state === 'completed', text)
    assert.deepEqual(Object(summaryObject({ ...some, state })).exitCode, EXIT_CODES[state])
  }
})

test('a summary of a failure begins with its cause, and counts only if there is something to count', () => {
  const failed: Summary = { ...some, state: 'failed', problem: 'The disk is full.' }
  assert.deepEqual(summaryLines(failed), ['Failed: The disk is full.'])
  const tally = { ...emptyTally(), events: 1 }
  tally.threads.created = 1
  const [cause, counts] = summaryLines({ ...failed, tally })
  assert.equal(cause, 'Failed: The disk is full.')
  assert.match(counts ?? '', /^1 thread created, 0 updated, .*; 0 quotes created, /)
})

test('a run that went on from a checkpoint says how much of its counts is of earlier runs', () => {
  const tally = { ...emptyTally(), events: 700 }
  tally.threads.created = 700
  const resumed: Summary = { ...some, tally, threadsBefore: 650 }
  assert.match(
    summaryLines(resumed).join('\n'),
    /^Done: 700 threads created.*\nWent on from a checkpoint: earlier runs stored or rejected 650 of these threads\./,
  )
  assert.equal(Object(summaryObject(resumed)).threadsBefore, 650)
})

test('the summary names everything that was skipped, cut or replaced, and what to do next', () => {
  const tally = emptyTally()
  tally.notes.skipped['messages that were deleted'] = 1_200
  tally.notes.cut.titles = 3
  tally.notes.warning['ignored column a'] = 2
  tally.notes.warning['ignored column b'] = 1
  tally.threads.rejected = 2
  tally.reasons['The record is not JSON'] = 1
  tally.reasons['title is required.'] = 2_000
  const lines = summaryLines({
    ...some,
    state: 'interrupted',
    tally,
    rejectedFile: 'a.rejected.ndjson',
    checkpoint: 'a.sluice-checkpoint',
    dashboard: 'https://board.example',
  })
  assert.match(
    lines[0] ?? '',
    /^Interrupted: 0 threads created, 0 updated, 0 unchanged, 2 rejected; .* in 2\.1m\.$/,
  )
  assert.deepEqual(lines.slice(1), [
    'Rejected records: a.rejected.ndjson (fix them there, and import that file)',
    '  warning: ignored column a (in 2 files)',
    '  warning: ignored column b',
    '  rejected (2,000): title is required.',
    '  rejected (1): The record is not JSON',
    '  skipped (1,200): messages that were deleted',
    '  cut (3): titles',
    'Run the same command again to go on from here (a.sluice-checkpoint).',
    'Dashboard: https://board.example/failures',
  ])
})

test('after giving up, the summary asks for another command, because the same one would give up again', () => {
  const lines = summaryLines({
    ...some,
    state: 'gave_up',
    problem: 'Too many.',
    checkpoint: 'a.sluice-checkpoint',
  })
  assert.equal(
    lines.at(-1),
    'Run the command again with a higher --max-errors to go on from here (a.sluice-checkpoint).',
  )
})

test('the advice on files that no format recognises is repeated only if it differs', () => {
  const unread = [
    { name: 'a', advice: 'These were tried: all.' },
    { name: 'b', advice: 'These were tried: all.' },
    { name: 'c', advice: 'It is a web page.' },
  ]
  assert.deepEqual(summaryLines({ ...some, state: 'completed_with_unread', unread }).slice(1), [
    '  a: not read, because no format recognises it. These were tried: all.',
    '  b: not read, for the same reason',
    '  c: not read, because no format recognises it. It is a web page.',
  ])
})

test('a summary does not ask for a repair of records whose jobs failed', () => {
  const tally = emptyTally()
  tally.threads.rejected = 31
  tally.reasons[`${PROBLEMS.job_failed.meaning} ${PROBLEMS.job_failed.remedy}`] = 31
  const rejected = {
    ...some,
    state: 'completed_with_rejected',
    tally,
    rejectedFile: 'a.rejected.ndjson',
  } as const
  const [, file, reason] = summaryLines(rejected)
  assert.equal(file, 'Rejected records: a.rejected.ndjson')
  assert.match(
    reason ?? '',
    /^ {2}not stored \(31\): The request was accepted, .* You need not post it again\.$/,
  )
  tally.reasons['title is required.'] = 1
  assert.match(
    summaryLines(rejected)[1] ?? '',
    /import that file; those that were not stored need no post\)$/,
  )
})
