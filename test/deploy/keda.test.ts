import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { promtool } from '../support/start-prometheus.ts'
import { type Manifest, parse, root } from './manifests.ts'

const manifests = parse(readFileSync(`${root}deploy/kubernetes/everything.yaml`, 'utf8'))
const scaledObject = manifests.find(({ kind }) => kind === 'ScaledObject') as
  | ScaledObject
  | undefined
const query = scaledObject?.spec.triggers[0].metadata.query

interface ScaledObject extends Manifest {
  spec: { triggers: [{ metadata: { query: string } }] }
}

/** Of both API replicas, which report the same. */
const ofQueue = (metric: string, labels: string, value: number) =>
  ['a', 'b'].map((pod) => [`${metric}{namespace="sluice",pod="${pod}",${labels}}`, value] as const)
const oldest = (lane: string, seconds: number, state = 'waiting') =>
  ofQueue('sluice_oldest_job_seconds', `lane="${lane}",state="${state}"`, seconds)
const paused = (lane: string, value: number) =>
  ofQueue('sluice_lane_paused', `lane="${lane}"`, value)
const workers = (...available: number[]) =>
  available.map(
    (value, at) => [`sluice_store_available{namespace="sluice",pod="w${at}"}`, value] as const,
  )

const running = [...paused('interactive', 0), ...paused('bulk', 0)]
const cases = [
  [
    'the oldest waiting job of all lanes',
    [...oldest('interactive', 7), ...oldest('bulk', 40), ...running, ...workers(1, 1)],
    40,
  ],
  [
    'no waiting job',
    [...oldest('interactive', 0), ...oldest('bulk', 0), ...running, ...workers(1)],
    0,
  ],
  [
    'a failed job, and one of another namespace',
    [
      ...oldest('bulk', 3),
      ...oldest('bulk', 90_000, 'failed'),
      ...running,
      ...workers(1),
      ['sluice_oldest_job_seconds{namespace="other",lane="bulk",state="waiting"}', 500] as const,
    ],
    3,
  ],
  [
    'a paused lane beside one that is not',
    [
      ...oldest('interactive', 2),
      ...oldest('bulk', 900),
      ...paused('interactive', 0),
      ...paused('bulk', 1),
      ...workers(1),
    ],
    2,
  ],
  ['MongoDB unavailable to all workers', [...oldest('bulk', 900), ...running, ...workers(0, 0)], 0],
  [
    'MongoDB unavailable to one of two workers',
    [...oldest('bulk', 900), ...running, ...workers(0, 1)],
    900,
  ],
  ['Redis unavailable, so that nobody knows an age', workers(1, 1), undefined],
  ['no worker', [...oldest('bulk', 900), ...running], undefined],
] as const

test('the query names metrics that exist', () => {
  const names = query?.match(/sluice_\w+/g) ?? []
  assert.equal(names.length, 3)
  for (const name of names)
    assert.match(readFileSync(`${root}docs/metrics.md`, 'utf8'), new RegExp(`\`${name}[\`{]`))
})

test('KEDA scales workers by the age of what they could store', needs('prometheus'), (t) => {
  assert.ok(query)
  const tests = cases.map(([name, series, value]) => ({
    name,
    interval: '15s',
    input_series: series.map(([of, sample]) => ({ series: of, values: `${sample}x4` })),
    promql_expr_test: [
      {
        expr: query,
        eval_time: '1m',
        exp_samples: value === undefined ? [] : [{ labels: '{}', value }],
      },
    ],
  }))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-keda-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'keda.yml'), JSON.stringify({ tests }))
  assert.match(promtool(['test', 'rules', join(folder, 'keda.yml')]), /SUCCESS\s*$/)
})
