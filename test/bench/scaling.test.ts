import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import type { Result } from '../../bench/src/report/result.ts'
import { readResults } from '../../bench/src/report/results.ts'
import { BUSY, costAmong, type Prediction, predictions } from '../../bench/src/scaling/costs.ts'
import {
  ASSUMED,
  bottleneckOf,
  needsOf,
  RATES,
  resourcesOf,
  shareOf,
} from '../../bench/src/scaling/needs.ts'

const results = await readResults(fileURLToPath(new URL('../../bench/results', import.meta.url)))
const LARGEST_ERROR = 0.25
const POSTINGS = ['interactive', 'import'] as const

const errorOf = ({ predicted, measured }: Prediction) => Math.abs(predicted / measured - 1)
const wrongIn = (some: readonly Result[]) =>
  predictions(some).filter((one) => !(errorOf(one) <= LARGEST_ERROR))

test('the costs of a thread predict the rates of one and of two processes within 25 %', () => {
  assert.equal(predictions(results).length, 10)
  assert.deepEqual(wrongIn(results), [])
})

test('results that the costs do not explain, and those of another machine, are found', () => {
  const changed = results.map((result) =>
    result.name === 'workers' ? { ...result, measured: result.measured.map(halved) } : result,
  )
  assert.deepEqual(
    wrongIn(changed).map(({ scenario, contender }) => `${scenario}, ${contender}`),
    ['workers, 1 worker', 'workers, 2 workers', 'workers, 1 worker', 'workers, 2 workers'],
  )
  const moved = results.map((result) =>
    result.name === 'replicas' ? { ...result, where: { ...result.where, cores: 64 } } : result,
  )
  assert.throws(() => predictions(moved), /callers-64 and replicas were measured on two machines/)
})

test('no cell of a rate is beyond any of its resources, and one cell less would be', () => {
  for (const posting of POSTINGS)
    for (const rate of RATES) {
      const resources = resourcesOf(results, posting)
      const { cells } = needsOf(results, posting, rate)
      assert.deepEqual(
        resources.filter((resource) => shareOf(resource, rate / cells) > 1),
        [],
      )
      assert(cells === 1 || shareOf(bottleneckOf(resources), rate / (cells - 1)) > 1)
    }
})

test('a cell that loses a process of each kind carries its load, and with one process less it would not', () => {
  for (const posting of POSTINGS)
    for (const rate of RATES) {
      const { cells, apis, workers } = needsOf(results, posting, rate)
      for (const [role, count] of [
        ['api', apis / cells] as const,
        ['worker', workers / cells] as const,
      ]) {
        assert(Number.isInteger(count) && count > 1)
        const loadOf = (processes: number, left: number) =>
          ((rate / cells) * costAmong(results, posting, role, processes)) / 1e6 / left
        assert(loadOf(count, count - 1) <= BUSY)
        assert(count === 2 || loadOf(count - 1, count - 2) > BUSY)
      }
    }
})

test('one deployment lacks at each rate what docs/scaling.md says', () => {
  const lacks = (posting: (typeof POSTINGS)[number], rate: number) =>
    resourcesOf(results, posting).flatMap((resource) =>
      shareOf(resource, rate) > 1 ? [resource.name] : [],
    )
  const ofBoth = ["Redis's core", "the MongoDB primary's network, out", "a MongoDB member's disk"]
  assert.deepEqual(lacks('import', 10_000), [])
  assert.deepEqual(lacks('interactive', 10_000), ["Redis's core"])
  assert.deepEqual(
    lacks('import', 100_000).toSorted(),
    [...ofBoth, "the MongoDB primary's cores"].toSorted(),
  )
  assert.deepEqual(lacks('interactive', 100_000).toSorted(), [...ofBoth, "Redis's disk"].toSorted())
  for (const posting of POSTINGS) {
    const { edge, fullAfterDays } = needsOf(results, posting, 1_000_000)
    assert(edge > ASSUMED.link.value && fullAfterDays < 7)
  }
})

function halved(measured: Result['measured'][number]): Result['measured'][number] {
  return { ...measured, median: { ...measured.median, rate: measured.median.rate / 2 } }
}
