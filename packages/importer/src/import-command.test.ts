import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeZip } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { runImport } from './importer.test-support.ts'

async function folderWith(
  t: TestContext,
  files: Readonly<Record<string, string | Buffer>>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
  return folder
}

/**
 * Runs `sluice import …` in a folder where no Sluice runs. Returns its exit code, and all that it
 * prints.
 */
async function run(folder: string, args: readonly string[]) {
  const { code, stdout, stderr } = await runImport({ folder, env: {} }, args)
  return { code, output: (stdout + stderr).trimEnd() }
}

const thread = { service: 'slack', externalId: '1', title: 'T', quotes: [{ text: 'a' }] }

test('options, files and targets that cannot be used end with exit code 3, and say what to do', async (t) => {
  const files = { 'good.ndjson': JSON.stringify(thread), 'prose.txt': 'no export', key: 'slc_1' }
  const folder = await folderWith(t, files)
  const good = join(folder, 'good.ndjson')
  for (const [args, message] of [
    [['--max-errors', 'few', good], /Write a whole number/],
    [['--api-key', 'slc_1', good], /unknown option '--api-key'/],
    [
      [],
      /How to get an export:\n {2}slack .* Export\n.*\n {2}whatsapp .*Also read: linear, .*--help/s,
    ],
    [['--map', 'title', good], /Write a name, =, and a value/],
    [[join(folder, 'gone.ndjson')], /gone.ndjson cannot be read: it does not exist/],
    [[join(folder, 'prose.txt')], /not recognised. These were tried: slack, .*--format/],
    [['--encoding', 'morse', good], /Write the name of an encoding, such as windows-1252/],
    [
      ['--set', 'service=teams', '--dry-run', good],
      /--set service=teams: the service must be one of/,
    ],
    [
      ['--state-dir', join(folder, 'gone'), good],
      /can't be written .*gone.*no such file.* with --state-dir/,
    ],
    [
      ['--dry-run', '--temp-dir', join(folder, 'gone'), good],
      /can't be written .*gone.*no such file.* --temp-dir/,
    ],
    [
      ['--dry-run', '--rejected', join(folder, 'gone/a'), good],
      /can't be written .*gone.*no such file.* --rejected/,
    ],
    [
      ['--dry-run', '--state-dir', good, good],
      /can't be written .*good.ndjson.*not a directory.* with --state-dir/,
    ],
    [['--format', 'morse', good], /--format must be one of slack/],
    [[good], /No Sluice runs in .*--url/],
    [['--url', 'http://127.0.0.1:9', good], /put an importer's key into SLUICE_API_KEY/],
    [
      ['--url', 'ftp://example.com', '--key-file', join(folder, 'key'), good],
      /--url must begin with http/,
    ],
  ] as const) {
    const { code, output } = await run(folder, args)
    assert.equal(code, 3, output)
    assert.match(output, message)
    assert.doesNotMatch(output, /done|Dashboard/i)
  }
})

test('a dry run ends with 0, 1 or 2, by its rejected records', async (t) => {
  const bad = JSON.stringify({ ...thread, title: ' ' })
  const folder = await folderWith(t, {
    'good.ndjson': JSON.stringify(thread),
    'bad.ndjson': [JSON.stringify(thread), bad, bad].join('\n'),
  })
  const outputs = await Promise.all([
    run(folder, ['--dry-run', join(folder, 'good.ndjson')]),
    run(folder, ['--dry-run', join(folder, 'bad.ndjson')]),
    run(folder, ['--dry-run', '--max-errors', '1', join(folder, 'bad.ndjson')]),
  ])
  assert.deepEqual(
    outputs.map(({ code }) => code),
    [0, 1, 2],
  )
  assert.match(
    outputs[1]?.output ?? '',
    /1 valid thread with 1 quote, 2 rejected.*bad.ndjson:2 \/title: title is required/s,
  )
})

test('a dry run prints the corrected command whole, with the columns that are meant', async (t) => {
  const folder = await folderWith(t, {
    "Ada's rows.csv": 'ticket,subject,body,author\n7,Printer,It burns,Ada\n',
  })
  const file = join(folder, "Ada's rows.csv")
  const { output } = await run(folder, ['--dry-run', '--json', file, '--map', 'url=link'])
  const { corrected } = JSON.parse(output.split('\n').at(-1) ?? '')
  const [typed, added] = [
    `--dry-run --json '${file.replace("'", `'\\''`)}' --map url=link`,
    '--map url=COLUMN',
  ]
  const meant = '--map text=body --map title=subject --map speaker=author'
  assert.equal(
    corrected,
    `sluice import ${typed} ${added} --set service=custom --group-by COLUMN ${meant}`,
  )
})

test('a dry run proposes the order of dates that all rows show, and a zone for dates without one', async (t) => {
  const chat = {
    id: 1,
    type: 'personal_chat',
    messages: [{ id: 1, type: 'message', date: '2024-05-01T09:30:00' }],
  }
  const folder = await folderWith(t, {
    'a.csv': 'id,Full Name,Post_Title,Review Text,sent\n1,Ada,Rye,Good,13/05/2024\n',
    'result.json': JSON.stringify(chat),
  })
  const correctedOf = async (...args: string[]) => {
    const { output } = await run(folder, ['--dry-run', '--json', ...args])
    return JSON.parse(output.split('\n').at(-1) ?? '').corrected
  }
  const [table, found] = [
    join(folder, 'a.csv'),
    ['--map', 'externalId=id', '--map', 'createdAt=sent'],
  ]
  assert.match(
    await correctedOf(table, ...found),
    / --map 'text=Review Text' --map title=Post_Title$/,
  )
  const all = [...found, '--map', 'text=Review Text', '--set', 'service=custom']
  assert.match(await correctedOf(table, ...all), / --date-format D\/M\/Y$/)
  assert.match(await correctedOf(join(folder, 'result.json')), / --timezone ZONE$/)
})

test('the summary of a dry run has a line for each conversation, and names dates in the future', async (t) => {
  const rows = ['r1,Ada,2024-05-25T09:30:00Z,Hi', 'r2,Bo,2924-05-25T09:31:00Z,Ho', 'r3,Bo,,Hu']
  const folder = await folderWith(t, {
    'a.csv': ['externalId,speaker,createdAt,text', ...rows].join('\n'),
  })
  const args = [
    '--dry-run',
    '--set',
    'service=custom',
    '--set',
    'channelName=yard',
    join(folder, 'a.csv'),
  ]
  const { code, output } = await run(folder, args)
  assert.equal(code, 0, output)
  assert.match(
    output,
    /Conversations:\n {2}yard: 3 messages, 2024-05-25 to 2924-05-25, 2 speakers: Ada, Bo\n/,
  )
  assert.match(output, /doubtful \(1\): dates in the future, by more than a day/)
  const json = await run(folder, ['--json', ...args])
  const { conversations, otherThreads } = JSON.parse(json.output.split('\n').at(-1) ?? '')
  const [{ name, messages, speakers, last }] = conversations
  assert.deepEqual(
    [name, messages, speakers, last.slice(0, 4), otherThreads],
    ['yard', 3, ['Ada', 'Bo'], '2924', 0],
  )
})

test('exports of one chat that overlap are one, also under one name, and /dev/null may have the rejected', async (t) => {
  const lines = ['Hi', 'Hi', 'Ho'].map((text) => `31/5/2024, 09:30 - Ada: ${text}\n`)
  const folder = await folderWith(t, {
    'a/Chat.txt': lines.slice(0, 2).join(''),
    'b/Chat.txt': lines.join(''),
  })
  const names = ['a', 'b', 'b'].map((name) => join(folder, name, 'Chat.txt'))
  const { code, output } = await run(folder, [
    '--dry-run',
    '--timezone',
    'UTC',
    '--rejected',
    '/dev/null',
    ...names,
  ])
  assert.match(
    output,
    /1 valid thread with 3 quotes, 0 rejected.*Chat: 3 messages.* skipped \(2\): copies of messages/s,
  )
  assert.equal(code, 0, output)
})

test('an input whose records all were skipped, or whose mails are all empty, is no success', async (t) => {
  const folder = await folderWith(t, {
    'rows.csv': 'externalId,service,text\n1,custom, \n',
    'none.csv': 'externalId,service,text\n',
    'a.eml': 'From: ada@example.org\nSubject: Hi\nMessage-ID: <1@example.org>\n\n',
    'some.ndjson': JSON.stringify(thread),
  })
  for (const [name, code, message] of [
    ['rows.csv', 1, /no record became a thread: .* skipped \(1\): rows without text/s],
    ['a.eml', 1, /no record became a thread: .* skipped \(1\): mails with neither text nor files/s],
    ['none.csv', 0, /nothing was sent: 0 valid threads/],
    ['some.ndjson', 0, /1 valid thread/],
  ] as const) {
    const { code: ended, output } = await run(folder, ['--dry-run', join(folder, name)])
    assert.match(output, message)
    assert.equal(ended, code, output)
  }
})

test('an archive beside readable files is named, and is no success', async (t) => {
  const files = {
    'a.ndjson': JSON.stringify(thread),
    'more.zip': 'PK\x03\x04',
    'more.tgz': '\x1f\x8b',
  }
  const folder = await folderWith(t, files)
  const { code, output } = await run(folder, ['--dry-run', '--json', folder])
  const { valid, state, unread } = JSON.parse(output.split('\n').at(-1) ?? '')
  assert.deepEqual([code, state, valid.threads], [1, 'completed_with_unread', 1])
  const names = unread.map(({ name }: { name: string }) => name.slice(folder.length))
  assert.deepEqual(names, ['/more.tgz', '/more.zip'])
})

test('a table without the columns of a thread is named beside another export, and ends an import of its own', async (t) => {
  const files = { 'a.ndjson': JSON.stringify(thread), 'contacts.csv': 'Name,Mail\nAda,a@b\n' }
  const folder = await folderWith(t, files)
  const [export_ = '', contacts = ''] = Object.keys(files).map((name) => join(folder, name))
  const beside = await run(folder, ['--dry-run', export_, contacts, '--map', 'text=body'])
  assert.match(
    beside.output,
    /1 valid thread.*contacts.csv: not read, .* contacts.csv has no column body, .*--set/s,
  )
  assert.equal(beside.code, 1)
  const alone = await run(folder, ['--dry-run', contacts])
  assert.match(
    alone.output,
    /Failed: contacts.csv has no column service, .*--group-by COLUMN --map text=COLUMN/,
  )
  assert.equal(alone.code, 3)
})

test('archives in a folder are read, but for those within archives and those that people sent', async (t) => {
  const line = (id: string) => JSON.stringify({ ...thread, externalId: id })
  const folder = await folderWith(t, {
    'a.zip': makeZip({ 'a.ndjson': line('a'), 'loaf.jpg': 'x', 'within.zip': 'PK\x03\x04' }),
    'more/b.ZIP': makeZip({ 'b.ndjson': line('b') }),
    'chat/_chat.txt': '[31/5/2024, 09:30] Ada: Hi\n',
    'chat/00000012-bread.zip': makeZip({ 'sent.ndjson': line('sent') }),
    'chat/bread.zip': makeZip({ 'notes.txt': 'bread' }),
    'chat/threads.zip': makeZip({ 'c.ndjson': line('c') }),
    'empty.zip': makeZip({}),
  })
  const { code, output } = await run(folder, ['--dry-run', '--timezone', 'UTC', folder])
  assert.equal(code, 1)
  assert.match(output, /4 valid threads with 4 quotes, 0 rejected/)
  for (const line of [
    '/a.zip: ndjson, 1 record, 1 thread',
    '/more/b.ZIP: ndjson, 1 record, 1 thread',
  ])
    assert.ok(output.includes(line), output)
  assert.match(
    output,
    /a.zip\/within.zip: not read, .* It is a zip archive: save it as a file of its own/,
  )
  assert.match(output, /empty.zip: not read, .* It is an archive without files/)
  assert.match(output, /bread.zip\/notes.txt: not read/)
  assert.match(output, /skipped \(1\): files without messages: file attachments$/m)
  assert.doesNotMatch(output, /sent.ndjson/)
})

test('each input has a line: its format, records and threads', async (t) => {
  const mail = (id: number, reply: string) =>
    `From: a@b\nMessage-ID: <${id}@b>\nSubject: Hi\n${reply}\nHello\n`
  const folder = await folderWith(t, {
    'a.ndjson': JSON.stringify(thread),
    '1.eml': mail(1, ''),
    'rows.csv': 'externalId,service,text\n1,custom,a\n2,custom,b\n',
    '2.eml': mail(2, 'In-Reply-To: <1@b>\n'),
    'notes.txt': 'no export',
  })
  const names = ['a.ndjson', '1.eml', 'rows.csv', '2.eml', 'notes.txt'].map((name) =>
    join(folder, name),
  )
  const { code, output } = await run(folder, ['--dry-run', ...names])
  assert.equal(code, 1)
  assert.match(output, /some files were not read: 4 valid threads with 5 quotes, 0 rejected/)
  for (const line of [
    'a.ndjson: ndjson, 1 record, 1 thread',
    '1.eml: mail, 1 record, 1 thread',
    '2.eml: mail, 1 record, 0 threads',
    'rows.csv: csv, 2 records, 2 threads',
    'notes.txt: not read, because no format recognises it. These were tried: slack, ',
  ])
    assert.ok(output.includes(`\n  ${line}`), output)
  const whole = await run(folder, ['--dry-run', folder])
  assert.match(whole.output, /\/sluice-import-test-\w+: mail, 2 records, 1 thread\n/)
})

test('an option that no format of the input reads is refused, and formats that read it are named', async (t) => {
  const folder = await folderWith(t, {
    'a.ndjson': JSON.stringify(thread),
    'a.eml': 'From: a@b\nSubject: c\n\nd',
  })
  for (const [args, message] of [
    [
      ['--timezone', 'Europe/Berlin', 'a.ndjson'],
      /--timezone does not apply to ndjson. These formats read it: .*csv/,
    ],
    [
      ['--set', 'service=custom', 'a.eml'],
      /--set does not apply to mail. These formats read it: ndjson, json, csv/,
    ],
    [['--internal-notes', 'a.eml', 'a.ndjson'], /--internal-notes does not apply to mail, ndjson/],
    [['--timezone', 'Mars/X', 'a.eml'], /Write the name of a time zone, such as Europe\/Berlin/],
    [['--date-format', 'iso', 'a.eml'], /Write the order of day, month and year, such as D.M.Y/],
  ] as const) {
    const named = args.map((arg) => (/^a\./.test(arg) ? join(folder, arg) : arg))
    const { code, output } = await run(folder, ['--dry-run', ...named])
    assert.match(output, message)
    assert.equal(code, 3)
  }
  const some = ['--dry-run', '--set', 'title=x', join(folder, 'a.eml'), join(folder, 'a.ndjson')]
  assert.equal((await run(folder, some)).code, 0)
})

test('a dry run counts the copies of a message as one quote, as the service stores them', async (t) => {
  const mail =
    'From a@b Mon May  3 10:00:00 2010\nFrom: a@b\nMessage-ID: <1@b>\nSubject: Hi\n\nHello\n\n'
  const folder = await folderWith(t, { 'a.mbox': mail + mail })
  const { output } = await run(folder, ['--dry-run', join(folder, 'a.mbox')])
  assert.match(output, /1 valid thread with 1 quote, 0 rejected/)
})

test('help lists formats and exit codes, and is no failure', async (t) => {
  const { code, output } = await run(await folderWith(t, {}), ['--help'])
  assert.equal(code, 0)
  assert.match(output, /slack {2,}Slack export.*5 crashed/s)
  assert.match(output, /Fields of --map and --set: service,.* replyingTo,.* source.createdAt/)
  assert.match(
    output.replaceAll(/\s+/g, ' '),
    /SLUICE_API_KEY; without --url, then the key of the same Sluice/,
  )
})
