import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { emptyTally } from './account/ledger.ts'
import { type FORMAT_OPTIONS, OPTION_NAMES } from './formats/format-options.ts'
import { formats } from './formats/formats.ts'
import { importCommand } from './import-command.ts'
import { createStops, failureOf, type ImportOptions } from './import-request.ts'

test('a state folder that does not exist is named, with the option that chooses another', async () => {
  const file = join(tmpdir(), `absent-${process.pid}`, 'a.sluice-checkpoint')
  const error = await writeFile(file, '').then(
    () => undefined,
    (failure: unknown) => failure,
  )
  const { state, problem } = failureOf(error)
  assert.equal(state, 'failed')
  assert.ok(problem?.includes(file) && problem.includes('--state-dir'), problem)
})

/** Every key of a request. TypeScript refuses a list that lacks one, or has another. */
const KEYS: Record<
  keyof Required<Omit<ImportOptions, keyof typeof FORMAT_OPTIONS | 'names'>>,
  true
> = {
  format: true,
  encoding: true,
  idPrefix: true,
  dryRun: true,
  checkpoint: true,
  rejected: true,
  stateDir: true,
  maxErrors: true,
  concurrency: true,
  tempDir: true,
  verbose: true,
}
/** What the command itself reads. */
const OF_COMMAND = ['url', 'keyFile', 'json', 'quiet']

test('each option of the command is a key of the request, and each key is an option', () => {
  const { options } = importCommand({ folder: '.', env: {}, process, say: () => {} })
  const names = options.map((option) => option.attributeName())
  assert.deepEqual(
    names.toSorted(),
    [...OF_COMMAND, ...Object.keys(KEYS), ...OPTION_NAMES].toSorted(),
  )
})

test('each option of formats is read by one of them', () => {
  for (const name of OPTION_NAMES)
    assert.ok(
      formats.some(({ options }) => options?.includes(name)),
      name,
    )
})

test('the bound of rejected records counts those of earlier runs, and an error that all share is said once', () => {
  const signal = new AbortController().signal
  const stops = createStops({ interrupted: signal, hurry: signal })
  const tally = emptyTally()
  tally.threads.rejected = 3
  tally.reasons = { 'service is required.': 3 }
  stops.refuseAfterErrors(tally, 3)
  assert.throws(
    () => stops.refuseAfterErrors(tally, 2),
    /^Error: More records than 2 were rejected, all for one reason: service is required\. Allow more with --max-errors\.$/,
  )
  stops.afterErrors({ ...tally, reasons: { a: 1, b: 2 } }, 3)
  const { state, problem } = failureOf(stops.stopping.reason)
  assert.deepEqual(
    [state, problem],
    ['gave_up', 'More records than 3 were rejected. Allow more with --max-errors.'],
  )
})
