import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'

const HOOKS = fileURLToPath(new URL('./schemathesis/hooks.py', import.meta.url))
const CHECKS = [
  ...[
    'positive_data_acceptance',
    'not_a_server_error',
    'status_code_conformance',
    'content_type_conformance',
  ],
  ...['response_headers_conformance', 'response_schema_conformance'],
]
const REQUESTS_PER_ROUTE = 10

describe('requests that Schemathesis makes from /openapi.json', needs('schemathesis'), () => {
  let sluice: TestSluice
  /** Schemathesis keeps what it found in the folder that it runs in. */
  let cwd: string
  beforeSuite(async (t) => {
    cwd = await mkdtemp(join(tmpdir(), 'sluice-schemathesis-'))
    t.onTestFinished(() => rm(cwd, { recursive: true }))
    sluice = await startSluice(t, {
      settings: { QUOTES_PER_SECOND: '1000000', LIST_SOURCES: 'on' },
    })
  })

  /** Runs it on the routes of these tags. @returns what it printed, if it found a fault. */
  function faultsOf(key: string, ...tags: string[]): Promise<string | undefined> {
    const args = [
      '--checks',
      CHECKS.join(','),
      '--mode',
      'positive',
      '--phases',
      'examples,coverage,fuzzing',
    ]
    const bounds = [
      '--max-examples',
      String(REQUESTS_PER_ROUTE),
      '--seed',
      '1',
      '--no-shrink',
      '--continue-on-failure',
    ]
    const included = tags.flatMap((tag) => ['--include-tag', tag])
    const caller = ['--header', `x-api-key: ${key}`, ...included]
    const env = { ...process.env, SCHEMATHESIS_HOOKS: HOOKS }
    return new Promise((resolve) => {
      execFile(
        'schemathesis',
        ['run', `${sluice.url}/openapi.json`, ...args, ...bounds, ...caller],
        { cwd, env, maxBuffer: 2 ** 26 },
        (error, stdout) => resolve(error ? stdout : undefined),
      )
    })
  }

  test('of importers and of deletions are accepted, and answered as described', async () => {
    assert.equal(await faultsOf(sluice.key, 'Importers', 'Deletions'), undefined)
  })

  test('of operators are accepted, and answered as described', async () => {
    const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    await untilKeyIsKnown(sluice.url, key)
    assert.equal(await faultsOf(key, 'Operators'), undefined)
  })

  test('without a key are accepted, and answered as described', async () => {
    assert.equal(await faultsOf('none', 'Service'), undefined)
  })
})
