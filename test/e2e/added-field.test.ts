import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@sluice/client'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'

const run = promisify(execFile)
const MAIN = fileURLToPath(import.meta.resolve('../../apps/cli/src/main.ts'))
/** Adds the field `mood` to a source, and `weight` to a quote. */
const PRELOAD = { NODE_OPTIONS: `--import=${import.meta.resolve('./support/added-fields.ts')}` }

const INPUTS = {
  'csv.csv': 'externalId,title,text,mood,weight\ncsv,T,a b,calm,2.5\n',
  'ndjson.ndjson': `${JSON.stringify({
    ...{ service: 'custom', externalId: 'ndjson', title: 'T', mood: 'calm' },
    quotes: [{ externalId: 'ndjson', text: 'a b', weight: 2.5 }],
  })}\n`,
}

describe('a field that is added by one line to the schema of a source or a quote', () => {
  let sluice: TestSluice
  let folder: string

  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 1, settings: PRELOAD })
    folder = await mkdtemp(join(tmpdir(), 'sluice-field-test-'))
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  })

  test('goes from files through the import into the store, and out to the client', async () => {
    const files = Object.keys(INPUTS).map((name) => join(folder, name))
    for (const [at, content] of Object.values(INPUTS).entries())
      await writeFile(files[at] ?? '', content)
    const env = { ...runtimeEnv(), ...PRELOAD, SLUICE_API_KEY: sluice.key }
    const args = ['import', '--url', sluice.url, '--set', 'service=custom', '--json', ...files]
    const { stdout } = await run(process.execPath, [MAIN, ...args], { env })
    assert.doesNotMatch(stdout, /mood|weight|ignored/)
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    for (const externalId of ['csv', 'ndjson']) {
      const page = await client.getSource({ service: 'custom', externalId })
      assert.partialDeepStrictEqual(page, { source: { mood: 'calm' }, quotes: [{ weight: 2.5 }] })
    }
  })

  test('is answered, merged and kept by POST /sources like any other', async () => {
    const client = createClient({ url: sluice.url, apiKey: sluice.key })
    const thread = {
      service: 'custom',
      externalId: 'post',
      title: 'T',
      quotes: [{ externalId: '1', text: 'a' }],
    } as const
    const post = async (source: object, quote: object) =>
      client.post({ ...thread, ...source, quotes: [{ ...thread.quotes[0], ...quote }] })
    const expected = (mood: string, weight: number, outcome: string) => ({
      answer: { source: { mood, outcome }, quotes: [{ weight, outcome }] },
    })
    assert.partialDeepStrictEqual(
      await post({ mood: 'calm' }, { weight: 1 }),
      expected('calm', 1, 'created'),
    )
    assert.partialDeepStrictEqual(
      await post({ mood: 'wild' }, { weight: 2 }),
      expected('wild', 2, 'updated'),
    )
    assert.partialDeepStrictEqual(await post({}, {}), expected('wild', 2, 'unchanged'))
    const refused = post({ mood: 7 }, {})
    await assert.rejects(refused, (error) => /mood/.test(String(error)))
  })

  test('is in the description of the API and in the types of the client', async () => {
    const description = await (await fetch(`${sluice.url}/openapi.json`)).text()
    assert.match(description, /"mood"/)
    const types = fileURLToPath(
      import.meta.resolve('../../packages/client/client-types.program.ts'),
    )
    const program = `console.log((await import(${JSON.stringify(types)})).clientTypes())`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...runtimeEnv(), ...PRELOAD },
    })
    assert.match(stdout, /mood\?: string \| null/)
    assert.match(stdout, /weight\?: number \| null/)
  })
})
