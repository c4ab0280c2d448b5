// Tests of the mail format, on the mails of a small bakery.
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { detectFormats } from '../../input/detect-format.ts'
import { UnreadableFile } from '../format.ts'
import { formats } from '../formats.ts'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { mailFormat } from './mail-format.ts'
import { type RawMail, splitMbox } from './split-mbox.ts'

const root = mail(
  {
    'Message-ID': '<1@a>',
    Date: 'Wed, 1 May 2024 10:00:00 +0200',
    Subject: 'Cold oven',
    From: 'Ada Baker <ada@a.example>',
  },
  'Since six.',
)
const reply = mail(
  {
    'Message-ID': '<2@a>',
    'In-Reply-To': '<1@a>',
    References: '<1@a>',
    Subject: 'Re: Cold oven',
    From: 'bo@a.example',
  },
  'Fixed.',
)

test('recognises mbox files, .eml files and Maildir', async () => {
  expect(await isMail('inbox', mbox([root]))).toBe(true)
  expect(await isMail('1.eml', root)).toBe(true)
  expect(await isMail('cur/1.host:2,S', root)).toBe(true)
  expect(await isMail('a.ndjson', '{"title": "From: x"}')).toBe(false)
  expect(await isMail('a.txt', 'From here on: nothing\n')).toBe(false)
})

test('the mails before the damage of a mailbox are read', async () => {
  const content = Buffer.from(mbox([root, `${reply}${'More.\n'.repeat(20_000)}`]))
  async function* open() {
    yield content
    throw new UnreadableFile('inbox', 'it is damaged.', undefined)
  }
  const found = await readAll(mailFormat, [{ path: 'inbox', open, beginning: async () => content }])
  expect(found.pieces.map(({ externalId }) => externalId)).toEqual(['1@a'])
  expect(found.rejected.map(({ reason }) => reason)).toEqual([
    "The file can't be read: it is damaged.",
  ])
})

test('few large mails are in memory at once', async () => {
  const large = mail({ 'Message-ID': '<1@a>', From: 'ada@a.example' }, 'Cold. '.repeat(100_000))
  const options = { map: new Map(), set: new Map() }
  const lengths: number[] = []
  for await (const list of mailFormat.read(
    [inputFile('inbox', mbox(Array(8).fill(large)))],
    options,
  ))
    lengths.push(list.length)
  expect(lengths).toEqual([2, 2, 2, 2, 0])
})

describe('threads', () => {
  test('a mail is a quote, with the ids of the mails before it', async () => {
    const later = mail(
      {
        'Message-ID': '<3@a>',
        'In-Reply-To': '<2@a>',
        References: '<1@a>\r\n <2@a>',
        From: '"Cy" <cy@a>',
      },
      'Thanks!',
    )
    const createdAt = '2024-05-01T10:00:00.000Z'
    const { pieces } = await find(mbox([root, reply, later]))
    expect(pieces.map(({ externalId, references }) => [externalId, references])).toEqual([
      ['1@a', []],
      ['2@a', ['1@a']],
      ['3@a', ['1@a', '2@a']],
    ])
    expect(pieces.map((piece) => piece.quotes[0])).toEqual([
      {
        externalId: '1@a',
        text: 'Since six.',
        speaker: 'Ada Baker',
        createdAt: '2024-05-01T08:00:00.000Z',
      },
      { externalId: '2@a', text: 'Fixed.', speaker: 'bo@a.example', replyingTo: '1@a', createdAt },
      { externalId: '3@a', text: 'Thanks!', speaker: 'Cy', replyingTo: '2@a', createdAt },
    ])
  })

  test('without References, the first id of In-Reply-To counts, also within a sentence', async () => {
    const inReplyTo = 'Your message of today <1@a> <2@a>'
    const { pieces } = await find(mail({ 'Message-ID': '<9@a>', 'In-Reply-To': inReplyTo }, 'x'))
    expect(pieces[0]).toMatchObject({
      references: ['1@a'],
      quotes: [{ externalId: '9@a', replyingTo: '1@a' }],
    })
    const both = { 'Message-ID': '<9@a>', 'In-Reply-To': inReplyTo, References: '<0@a> <9@a>' }
    expect((await find(mail(both, 'x'))).pieces[0]?.references).toEqual(['0@a'])
  })

  test.each([
    ['Message from Bo <bo@a.example> of "Wed, 1 May" <1@a>', '1@a'],
    ['"Bo" <bo@a.example>\'s message of Wednesday <1@a>', '1@a'],
    ['<1@a> from Bo <bo@a.example>', '1@a'],
    ['Ada <ada@a.example>', undefined],
    ['ada@a.example', undefined],
  ])('an address in In-Reply-To is no id: %s', async (inReplyTo, id) => {
    const headers = { 'Message-ID': '<9@a>', 'In-Reply-To': inReplyTo, To: 'ada@a.example' }
    const { pieces } = await find(mail(headers, 'x'))
    expect(pieces[0]?.references).toEqual(id === undefined ? [] : [id])
    expect(pieces[0]?.quotes[0]?.replyingTo).toBe(id)
  })

  test('a mail has a title and a date for its source, in case that it is the topmost one', async () => {
    const { pieces } = await find(mbox([root, reply, mail({ 'Message-ID': '<3@a>' }, 'x')]))
    expect(pieces.map((piece) => piece.fields)).toEqual([
      { title: 'Cold oven', placeholderTitle: 'Cold oven', createdAt: '2024-05-01T08:00:00.000Z' },
      { title: 'Cold oven', placeholderTitle: 'Cold oven', createdAt: '2024-05-01T10:00:00.000Z' },
      { placeholderTitle: 'Mail without a subject', createdAt: '2024-05-01T10:00:00.000Z' },
    ])
  })

  test.each([
    ['Re: Fwd: RE[2]: Oven', 'Oven'],
    ['[bakers] Re: Oven', '[bakers] Oven'],
    ['Re: [bakers] AW: Re: Oven', '[bakers] Oven'],
    ['AW: WG: Ofen', 'Ofen'],
    ['Recipe: rye', 'Recipe: rye'],
    ['Bread,\n\tcakes', 'Bread, cakes'],
    ['=?utf-8?Q?Re:_Caf=C3=A9?=', 'Café'],
  ])('the title of %j is %j', async (Subject, title) => {
    const { pieces } = await find(mail({ 'Message-ID': '<1@a>', Subject }, 'x'))
    expect(pieces[0]?.fields.title).toBe(title)
  })

  test('a mail without a Message-ID keeps its identity wherever it stands', async () => {
    const anonymous = mail({ From: 'ada@a', Subject: 'Oven' }, 'Cold.')
    const first = await find(mbox([anonymous, root]))
    const second = await find(mbox([root, `Status: RO\n${anonymous}`]))
    expect(first.pieces[0]?.externalId).toMatch(/^sha256-/)
    expect(second.pieces[1]?.externalId).toBe(first.pieces[0]?.externalId)
  })

  test('mails without a Message-ID and a text differ by their files', async () => {
    const withFile = (name: string) =>
      mail({ From: 'ada@a', 'Content-Type': `text/csv; name=${name}` }, 'a,b')
    const { pieces } = await find(mbox([withFile('a.csv'), withFile('b.csv')]))
    expect(new Set(pieces.map(({ externalId }) => externalId)).size).toBe(2)
  })
})

describe('ids', () => {
  test.each([
    ['<1@a>', '1@a'],
    ['1@a', '1@a'],
    ['<1@a', '1@a'],
    ['<1@a>#1/1', '1@a'],
    ['<1 @a>', '1@a'],
    ['1a', '1a'],
  ])('the Message-ID %s is %s', async (id, externalId) => {
    expect((await find(mail({ 'Message-ID': id }, 'x'))).pieces[0]?.externalId).toBe(externalId)
  })

  test.each(['<>', '', '< >'])('the Message-ID %j is none', async (id) => {
    const { pieces } = await find(
      mbox(['a', 'b'].map((text) => mail({ 'Message-ID': id, From: 'ada@a' }, text))),
    )
    expect(new Set(pieces.map(({ externalId }) => externalId)).size).toBe(2)
    expect(pieces[0]?.externalId).toMatch(/^sha256-/)
  })

  test.each([
    ['1@a', ['1@a']],
    ['1@a 2@a', ['1@a', '2@a']],
    ['<1@a><2@a>', ['1@a', '2@a']],
    ['<1@a>,2@a', ['1@a', '2@a']],
    ['Message of ada@a from Monday', []],
    ['"Message of Monday" <1@a>', ['1@a']],
  ])('the References %s are %j', async (References, ids) => {
    expect(
      (await find(mail({ 'Message-ID': '<9@a>', References }, 'x'))).pieces[0]?.references,
    ).toEqual(ids)
  })
})

describe('folders', () => {
  test('are mailboxes if one of their files is, and files of servers are counted', async () => {
    const files = [
      { ...inputFile('Drafts', ''), isEmpty: true },
      inputFile('Inbox.msf', '// <!-- <mdb:mork:z v="1.4"/> -->'),
      inputFile('courierimapacl', 'owner acdilrswx\n'),
      inputFile('dovecot.list', 'Name: value\n\nSubject: no mail'),
      inputFile('labels.json', '{"Version":1,"Payload":[]}'),
      inputFile('1.metadata.json', '{"Version":1,"Payload":{"Subject":"Oven"}}'),
      inputFile('Sub.sbd/Inbox', mbox([root])),
    ]
    const { read, unread, notes } = await detectFormats([{ name: 'x', files }], formats)
    expect(read.map(({ format, files: mails }) => [format.name, mails])).toEqual([
      ['mail', files.slice(-1)],
    ])
    expect([unread, notes.length]).toEqual([[], files.length - 1])
    const { pieces, noted } = await readAll(mailFormat, files)
    expect(pieces).toHaveLength(1)
    expect(noted).toEqual({ 'skipped: files without mails': 6 })
  })

  test('of Apple Mail are packages with an mbox, or have a file for each mail, with its length', async () => {
    const plist = '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"></plist>\n'
    const files = [
      inputFile('Sent.mbox/mbox', mbox([reply])),
      inputFile('Sent.mbox/table_of_contents', '\0\0'),
      inputFile('1.emlx', `${Buffer.byteLength(root)}  \n${root}${plist}`),
    ]
    expect(await filesByFormat(files)).toEqual({ mail: ['Sent.mbox/mbox', '1.emlx'] })
    const { pieces, noted } = await readAll(mailFormat, files)
    expect(pieces.map((piece) => piece.quotes[0]?.text)).toEqual(['Fixed.', 'Since six.'])
    expect(noted).toEqual({ 'skipped: files without mails': 1 })
  })

  test('have mails that a server compressed, which are counted', async () => {
    const { noted } = await readAll(mailFormat, [
      inputFile('cur/1:2,S', Buffer.from([0x1f, 0x8b, 8, 0])),
    ])
    expect(noted).toEqual({
      'skipped: files that are compressed without a name that says so (gunzip or unzstd them first)': 1,
    })
  })

  test('a delivery in tmp of a Maildir is no mail yet, and tmp elsewhere is a folder as any other', async () => {
    const paths = ['M/.Sent/cur/1', 'M/.Sent/tmp/2', 'tmp/3', 'M/new/4', 'M/tmp/5']
    const { pieces, noted } = await readAll(
      mailFormat,
      paths.map((path) => inputFile(path, root)),
    )
    expect(pieces.map(({ place }) => place.path)).toEqual(['M/.Sent/cur/1', 'tmp/3', 'M/new/4'])
    expect(noted).toEqual({ 'skipped: files in tmp of a Maildir, which are no mails yet': 2 })
  })
})

describe('mbox', () => {
  test('a line From splits only behind a blank line and with a date', async () => {
    const text = 'From here on\nFrom bo Wed May  1 10:00:00 2024\n\nFrom now on it is hot.'
    const { pieces } = await find(mbox([mail({ 'Message-ID': '<1@a>' }, text), reply]))
    expect(pieces.map((piece) => piece.quotes[0]?.text)).toEqual([text, 'Fixed.'])
    expect(pieces.map((piece) => piece.place.line)).toEqual([2, 10])
  })

  test('>From is unquoted by one', async () => {
    const { pieces } = await find(
      mbox([mail({ 'Message-ID': '<1@a>' }, '>From a\n>>From b\n> From c')]),
    )
    expect(pieces[0]?.quotes[0]?.text).toBe('From a\n>From b\n> From c')
  })

  test.each([
    ['Thunderbird', 'From - Wed May 01 10:00:00 2024'],
    ['Gmail', 'From 1796000000000000000@xxx Wed May 01 10:00:00 +0000 2024'],
    ['Mailman', 'From ada at a.example  Wed May  1 10:00:00 2024'],
    ['an old program', 'From ada Wed May  1 10:00 MET 2024'],
  ])('%s writes %j', async (_, separator) => {
    for (const newline of ['\n', '\r\n']) {
      const file = `${separator}\n${root}\n\n${separator}\n${reply}\n`.replaceAll('\n', newline)
      expect((await find(file)).pieces).toHaveLength(2)
    }
  })

  test.each([
    ['Thu May 01 10:00:00 +0000', undefined],
    ['Thu, 01 May 10:00:00 -0500', undefined],
    ['Wed, 1 May 24 10:00:00 +0000', '2024-05-01T10:00:00.000Z'],
    ['01-May-2024 10:00:00 +0000', '2024-05-01T10:00:00.000Z'],
    ['Wed 29 May 2019 06:09:22 PM EDT', '2019-05-29T22:09:22.000Z'],
  ])('the Date %j is %s: no year is invented', async (date, createdAt) => {
    const { pieces } = await find(mail({ 'Message-ID': '<1@a>', Date: date }, 'x'))
    expect(pieces[0]?.quotes[0]?.createdAt).toBe(createdAt)
  })

  test.each(['Tue, 12 Oct 2010 16:21:05', 'Tue Oct 12 16:21:05 2010', '12 Oct 2010 4:21:05 PM'])(
    'the Date %j is UTC, and its mail has one id, on machines of any zone',
    async (date) => {
      const zone = process.env.TZ
      const found = []
      for (const tz of ['Asia/Tokyo', 'America/New_York']) {
        process.env.TZ = tz
        found.push(await find(mail({ Date: date, From: 'a@a' }, 'x')))
      }
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
      expect(found[0]?.pieces).toEqual(found[1]?.pieces)
      expect(found[0]?.pieces[0]?.quotes[0]?.createdAt).toBe('2010-10-12T16:21:05.000Z')
    },
  )

  test('a mail without a Date has that of its delivery, which an import into Thunderbird does not change', async () => {
    const Received = 'from a by b;\r\n\tThu, 28 Oct 2004 17:00:38 -0400 (EDT)'
    const file = `From - Wed Nov 01 11:33:16 2023\nReceived: ${Received}\nFrom: ada@a\nMessage-ID: <1@a>\n\nx\n`
    const { pieces } = await find(file)
    expect(pieces[0]?.quotes[0]?.createdAt).toBe('2004-10-28T21:00:38.000Z')
  })

  test('a Date header of a megabyte is no date, and costs no time', async () => {
    const began = performance.now()
    const { pieces } = await find(
      mail({ 'Message-ID': '<1@a>', Date: `2024 ${':00'.repeat(350_000)}` }, 'x'),
    )
    expect(pieces[0]?.quotes[0]?.createdAt).toBe(undefined)
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  test('a mail of several parts without their boundary has its text', async () => {
    const { pieces } = await find(
      mail({ 'Message-ID': '<1@a>', 'Content-Type': 'multipart/mixed;\n bo' }, '--a\n\nx'),
    )
    expect(pieces[0]?.quotes[0]?.text).toBe('--a\n\nx')
  })

  test.each([
    ['From - Wed May 01 10:00:00 2024', '10:00'],
    ['From 1796000000000000000@xxx Wed May 01 10:00:00 +0200 2024', '08:00'],
    ['From ada at a.example  Wed May  1 10:00:00 2024', '10:00'],
    ['From ada Wed May  1 10:00 MET 2024', '09:00'],
    ['From ada Wed May  1 10:00:00 2024 -0100', '11:00'],
  ])(
    'a Date header that names no date is counted, and %j stands for it',
    async (separator, time) => {
      const file = `${separator}\n${mail({ 'Message-ID': '<1@a>', Date: 'yesterday' }, 'x')}\n`
      const found = await find(file)
      expect(found.pieces[0]?.quotes[0]?.createdAt).toBe(`2024-05-01T${time}:00.000Z`)
      expect(found.noted).toEqual({
        'replaced: Date headers without a date, by the date of the mbox': 1,
      })
      const alone = await find(mail({ 'Message-ID': '<1@a>', Date: 'yesterday' }, 'x'))
      expect(alone.pieces[0]?.quotes[0]?.createdAt).toBe(undefined)
      expect(alone.noted).toEqual({ 'skipped: Date headers without a date': 1 })
    },
  )

  test('a separator is found wherever the chunks of the file end', async () => {
    const text = `${root}\n${'o'.repeat(1_200)}\nFrom bo Wed May  1 10:00:00 2024\nFrom`
    const file = Buffer.from(mbox([text, reply]).replaceAll('\n', '\r\n'))
    for (let end = 0; end <= file.length; end++) {
      const mails: RawMail[] = []
      for await (const one of splitMbox(Readable.from([file.subarray(0, end), file.subarray(end)])))
        mails.push(one)
      expect(mails.map(({ line, bytes }) => [line, bytes.toString().trimEnd()])).toEqual([
        [2, text.replaceAll('\n', '\r\n')],
        [13, reply.replaceAll('\n', '\r\n')],
      ])
    }
  })

  test.each([
    ['Inbox,Opened', undefined],
    ['Trash', 'mails that were deleted'],
    ['Opened,"Trash"', 'mails that were deleted'],
    ['=?UTF-8?Q?Ge=C3=B6ffnet,Papierkorb?=', 'mails that were deleted'],
    ['=?UTF-8?B?0JrQvtGA0LfQuNC90LA=?=', 'mails that were deleted'],
    ['Spam,Unread', 'mails with the label of Gmail for spam'],
    ['Trash talk,Anti-Spam', undefined],
  ])('of mails with the labels %s, %s are left out', async (labels, reason) => {
    const found = await find(`X-Gmail-Labels: ${labels}\n${root}`)
    expect(found.pieces).toHaveLength(reason === undefined ? 1 : 0)
    expect(found.noted).toEqual(reason === undefined ? {} : { [`skipped: ${reason}`]: 1 })
  })

  test('mails that are marked as deleted are not sent', async () => {
    const marked = ['X-Mozilla-Status: 0009', 'X-Status: AD'].map((mark) => `${mark}\n${root}`)
    const found = await readAll(mailFormat, [
      inputFile('inbox', mbox([...marked, reply])),
      ...['cur/1:2,ST', 'cur/2:2,STab', 'cur/3;2,ST', 'cur/4!2,T', 'mh/,5'].map((path) =>
        inputFile(path, root),
      ),
    ])
    expect(found.pieces).toHaveLength(1)
    expect(found.noted).toEqual({ 'skipped: mails that were deleted': 7 })
  })
})

describe('texts', () => {
  test('HTML becomes text where a mail has no plain one', async () => {
    const html =
      '<h1>Oven</h1><p>Cold &amp; <a href="https://a.example">dark</a><img src="x.png"></p><blockquote>Hot?</blockquote>'
    const { pieces } = await find(
      mail({ 'Message-ID': '<1@a>', 'Content-Type': 'text/html' }, html),
    )
    expect(pieces[0]?.quotes[0]?.text).toBe('Oven\n\nCold & dark (https://a.example)\n\n> Hot?')
  })

  test('charset and transfer encoding are decoded, attachments are named', async () => {
    const parts = [
      '--b\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nCaf=E9',
      '--b\nContent-Type: image/png; name="loaf.png"\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\nAAAA',
      '--b--',
    ]
    const { pieces } = await find(
      mail(
        { 'Message-ID': '<1@a>', 'Content-Type': 'multipart/mixed; boundary=b' },
        parts.join('\n'),
      ),
    )
    expect(pieces[0]?.quotes[0]).toMatchObject({ text: 'Café', attachments: ['loaf.png'] })
  })

  test.each([
    ['quoted-printable', 'Caf=C3=A9 =\nau lait'],
    ['base64', 'Q2Fmw6kgYXUgbGFpdA=='],
    ['8bit', 'Café au lait'],
  ])('a body in %s is decoded', async (encoding, body) => {
    const headers = {
      'Message-ID': '<1@a>',
      'Content-Type': 'text/plain;\n charset=utf-8',
      'Content-Transfer-Encoding': encoding,
    }
    expect((await find(mail(headers, body))).pieces[0]?.quotes[0]?.text).toBe('Café au lait')
  })

  test('quoted text is kept, unless --strip-quotes', async () => {
    const text =
      'No.\n\nOn Wed, 1 May 2024 at 10:00, Ada Baker\n<ada@a.example> wrote:\n\n> Is it hot?\n> Really?\n\nBye'
    const file = mail({ 'Message-ID': '<1@a>' }, text)
    expect((await find(file)).pieces[0]?.quotes[0]?.text).toBe(text)
    const stripped = await find(file, { stripQuotes: true })
    expect(stripped.pieces[0]?.quotes[0]?.text).toBe('No.\n\nBye')
    expect(stripped.noted).toEqual({ 'cut: texts that quoted other mails': 1 })
  })

  test.each([
    ['No.\n\n-----Original Message-----\nFrom: Ada\n\nHot?', 'No.'],
    ['Am Mittwoch schrieb Ada:\n> Hot?\nNo.', 'No.'],
    ['Ада написал:\n> Hot?\nNo.', 'No.'],
    ['She wrote:\n\nnothing.', 'She wrote:\n\nnothing.'],
    ['> only quotes', '> only quotes'],
    ['Ada wrote:\n> Hot?\n\nBob wrote:\n\n> No.\n> Cold.\nAh.', 'Ah.'],
  ])('--strip-quotes makes %j %j', async (text, kept) => {
    const { pieces } = await find(mail({ 'Message-ID': '<1@a>' }, text), { stripQuotes: true })
    expect(pieces[0]?.quotes[0]?.text).toBe(kept)
  })
})

test('--strip-quotes takes no longer for each line of a quote, whatever stands above it', {
  timeout: 3_000,
}, async () => {
  const blank = '\n'.repeat(50_000)
  const text = `No.${blank}${'> Is it hot?\n'.repeat(50_000)}${'\n> Really?\n'.repeat(50_000)}`
  const { pieces } = await find(mail({ 'Message-ID': '<1@a>' }, text), { stripQuotes: true })
  expect(pieces[0]?.quotes[0]?.text).toBe('No.')
})

test('counts mails with neither text nor files, which have no quote', async () => {
  const found = await find(mbox([mail({ 'Message-ID': '<1@a>', Subject: 'Oven' }, ' '), reply]))
  expect(found.pieces.map(({ externalId, quotes }) => [externalId, quotes.length])).toEqual([
    ['1@a', 0],
    ['2@a', 1],
  ])
  expect(found.noted).toEqual({ 'skipped: mails with neither text nor files': 1 })
})

test('rejects what has the form of a mail only, and notes files without mails', async () => {
  const found = await readAll(mailFormat, [
    inputFile('a.eml', 'Note: bake bread\n\nx'),
    inputFile('logo.png', '\x89PNG'),
  ])
  expect(found.rejected).toMatchObject([
    { place: { path: 'a.eml', line: 1 }, record: 'Note: bake bread\n\nx' },
  ])
  expect(found.noted).toEqual({ 'skipped: files without mails': 1 })
})

function mail(headers: Readonly<Record<string, string>>, text: string): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`)
  return `${lines.join('')}\n${text}`
}

function mbox(mails: readonly string[]): string {
  return mails.map((one) => `From ada Wed May  1 10:00:00 2024\n${one}\n\n`).join('')
}

function isMail(path: string, content: string): Promise<boolean> {
  return recognises(mailFormat, inputFile(path, content))
}

function find(content: string, options = {}) {
  return readAll(mailFormat, [inputFile('inbox', content)], options)
}
