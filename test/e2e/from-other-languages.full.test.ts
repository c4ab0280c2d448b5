// The programs of docs/from-other-languages.md store each thread once, though their key's quota
// turns many posts away.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'

/** In place of the 5,000 threads of the document. */
const THREADS = 50
/** So small that it turns posts away also on a busy machine. */
const QUOTA = { quotesPerSecond: 10, burstQuotes: 5 }

const PROGRAMS = [
  ['python', 'python3', 'burst.py', /^\{'created': 50\}\n$/],
  ['go', 'go', 'burst.go', /^$/],
  ['bash', 'bash', 'burst.sh', /^$/],
] as const

describe('the programs of docs/from-other-languages.md', () => {
  let sluice: SharedSluice
  let document: string
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    document = await readFile(
      new URL('../../docs/from-other-languages.md', import.meta.url),
      'utf8',
    )
  })

  for (const [language, program, file, printed] of PROGRAMS) {
    const isMissing = spawnSync(program, [language === 'go' ? 'version' : '--version']).status !== 0
    test.skipIf(isMissing)(
      `${language}: a burst beyond the key's quota is stored whole`,
      async (t) => {
        const folder = await mkdtemp(join(tmpdir(), 'sluice-burst-'))
        t.onTestFinished(() => rm(folder, { recursive: true }))
        const [, burst = ''] =
          new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(document) ?? []
        await writeFile(join(folder, file), burst.replace(/\b5_?000\b/, String(THREADS)))
        const { key } = await createKey(sluice.db, {
          tenant: sluice.tenant,
          name: language,
          limits: QUOTA,
        })
        const own = { SLUICE_URL: sluice.url, SLUICE_API_KEY: key, HOME: homedir() }
        const args = language === 'go' ? ['run', file] : [file]
        const env = { ...runtimeEnv(), ...own }
        const { stdout, stderr } = await promisify(execFile)(program, args, { cwd: folder, env })
        // curl prints a line for each attempt that is turned away.
        assert.match(stderr, language === 'bash' ? /^(?!.*failed).*error: 429/s : /^$/)
        assert.match(stdout, printed)
        const externalId = new RegExp(`^${language === 'bash' ? 'shell' : language}-`)
        const stored = { tenant: sluice.tenant, externalId }
        assert.equal(await sluice.db.collection('sources').countDocuments(stored), THREADS)
      },
    )
  }
})
