import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { pathToFileURL } from 'node:url'
import { test } from 'vitest'
import { readRevision } from './revision.ts'

test('the revision is that of the branch, also if its ref is packed, or of a detached head', (t) => {
  const folder = mkdtempSync(`${tmpdir()}/sluice-git-`)
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  const git = pathToFileURL(`${folder}/`)
  const write = (name: string, text: string) => writeFileSync(new URL(name, git), text)
  assert.equal(readRevision(git), '', 'a download has none')
  write('HEAD', `${'1'.repeat(40)}\n`)
  assert.equal(readRevision(git), '1111111111')
  write('HEAD', 'ref: main\n')
  assert.equal(readRevision(git), '', 'a branch without a commit')
  write(
    'packed-refs',
    `# pack-refs with: peeled\n${'2'.repeat(40)} other-main\n${'3'.repeat(40)} main\n`,
  )
  assert.equal(readRevision(git), '3333333333')
  write('main', `${'4'.repeat(40)}\n`)
  assert.equal(readRevision(git), '4444444444')
})
