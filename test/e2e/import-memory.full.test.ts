import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runtimeEnv } from '@sluice/test-support'
import { test } from 'vitest'

const execute = promisify(execFile)
const SLUICE = fileURLToPath(new URL('../../sluice', import.meta.url))
const MIB = 1024 * 1024

const MAIL_BYTES = 384 * MIB
/**
 * docs/importing.md states the bound of the full form. Without limits of V8, the short form takes
 * more, too.
 */
const MOST_BYTES = 300 * 1e6

/** Tells the most memory that a process ever occupied, when it ends. */
const TELL_PEAK = `import { readFileSync } from 'node:fs'
process.on('exit', () => console.error(/VmHWM:.*/.exec(readFileSync('/proc/self/status', 'utf8'))[0]))`

const LINE = 'Die Öfen sind kalt, and the dough is not. '

/** Yields mails of 2 to 200 KB: texts, pages and files, in conversations of five. */
function* someMails(bytes: number): Generator<string> {
  for (let [at, written] = [0, 0]; written < bytes; at++) {
    const size = 1_000 + ((at * 7_919) % 100) ** 2 * (at % 10 === 0 ? 10 : 1)
    const id = (number: number) => `<${number}@example.org>`
    const text = `${LINE.repeat(size / LINE.length)}\n`
    const part =
      at % 4 === 0
        ? `text/html\n\n<p>${text.replaceAll('. ', '.</p>\n<p>')}</p>`
        : `text/plain; charset=utf-8\n\n${text}`
    const mail = `From ada@example.org Wed May  1 09:30:00 2024
From: Ada <ada@example.org>
Subject: The ovens
Date: Wed, 1 May 2024 09:30:00 +0000
Message-ID: ${id(at)}
References: ${id(at - (at % 5))}
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: ${part}
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename=a.pdf
Content-Transfer-Encoding: base64

${Buffer.from(text).toString('base64')}
--b--

`
    written += mail.length
    yield mail
  }
}

test('a dry run of a large mailbox takes little memory', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const mailbox = join(folder, 'a.mbox')
  await pipeline(someMails(MAIL_BYTES), createWriteStream(mailbox))
  const preload = `--import=data:text/javascript,${encodeURIComponent(TELL_PEAK)}`
  const env = { ...runtimeEnv(), NODE_OPTIONS: preload }
  const { stdout, stderr } = await execute(
    SLUICE,
    ['import', '--dry-run', '--json', '--temp-dir', folder, mailbox],
    {
      env,
    },
  )
  const { state, valid } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  assert.equal(state, 'completed')
  assert.ok(valid.threads > MAIL_BYTES / MIB, `only ${valid.threads} threads`)
  const peak = Number(/VmHWM:\s*(\d+) kB/.exec(stderr)?.[1]) * 1024
  assert.ok(peak <= MOST_BYTES, `${Math.round(peak / 1e6)} MB`)
})
