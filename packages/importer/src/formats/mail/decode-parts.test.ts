// Tests of how texts and headers of mails are decoded, by the whole mail format.
import { describe, expect, test } from 'vitest'
import { inputFile, readAll } from '../read-all.test-support.ts'
import { mailFormat } from './mail-format.ts'

const TOO_DEEP =
  'skipped: attached mails that lie in more than 50 others, or too deep in a large mail'
const HEAD = 'From: Ada <ada@a>\nMessage-ID: <1@a>\n'

async function read(file: string | Buffer) {
  const { pieces, noted, rejected } = await readAll(mailFormat, [inputFile('1.eml', file)])
  expect(rejected).toEqual([])
  const [{ fields, quotes: [quote] = [] } = { fields: {} }] = pieces
  return { title: fields.title, ...quote, noted }
}

/** Reads a text whose bytes are those of Latin-1. */
function readText(type: string, body: string, encoding = '8bit') {
  const header = `${HEAD}Content-Type: ${type}\nContent-Transfer-Encoding: ${encoding}\n\n`
  return read(Buffer.from(header + body, 'latin1'))
}

function readParts(type: string, ...parts: string[]) {
  const body = parts.map((part) => `--b\n${part}\n`).join('')
  return read(`${HEAD}Content-Type: ${type}; boundary=b\n\n${body}--b--\nepilogue\n`)
}

describe('a text in', () => {
  test.each([
    ['utf-7', 'Caf+AOk- is +2DzfXg- +- a+b', 'Café is 🍞 + a+b'],
    ['unicode-1-1-utf-7', 'Caf+AOk', 'Café'],
    ['iso-2022-kr', '\x1B$)C\nabc \x0EGQ19\x0F def', 'abc 한국 def'],
    ['iso-2022-cn', '\x1B$)A\x0E<:Ky\x0F.', '己所.'],
    ['hz-gb-2312', 'It is ~{<:Ky2;SR~}. ~~', 'It is 己所不右. ~'],
    ['iso-2022-jp', '\x1B$B%Q%9\x1B(B\x1B$B%o\x1B(B', 'パスワ'],
    ['cp932', '\x83p\x83X', 'パス'],
    ['cp-850', 'caf\x82', 'café'],
    ['IBM437', 'caf\x82', 'café'],
    ['win-1251', '\xCF\xE5\xF7\xFC', 'Печь'],
    ['koi8-r', '\xF0\xC5\xDE\xD8', 'Печь'],
    ['latin-1', 'caf\xE9', 'café'],
    ['iso_8859_15', '5 \xA4', '5 €'],
    ['us-ascii', 'caf\xE9', 'café'],
    ['unknown-8bit', 'caf\xC3\xA9', 'café'],
    ['utf-8', 'caf\xC3\xA9\nf\xFCr', 'café\nfür'],
    ['iso-8859-2', 'dzie\xC5\x84', 'dzień'],
    ['iso-8859-2', 'dzie\xF1', 'dzień'],
    ['gb2312', '\xE6\x82\xA8\xE5\xA5\xBD\xEF\xBC\x81', '您好！'],
    ['utf-16', 'c\0a\0f\0\xE9\0', 'café'],
    ['utf-16', '\0c\0a\0f\0\xE9', 'café'],
    ['utf-16', '\xFE\xFF\0c\0a\0f\0\xE9', 'café'],
    ['utf-16be', '\0c\0a\0f\0\xE9', 'café'],
    ['unicode', 'caf\xC3\xA9', 'café'],
  ])('%s', async (charset, body, text) => {
    const found = await readText(`text/plain; charset=${charset}`, body)
    expect(found.text).toBe(text)
    expect(found.noted).toEqual({})
    const encoded = Buffer.from(body, 'latin1').toString('base64')
    expect((await readText(`text/plain; charset="${charset}"`, encoded, 'base64')).text).toBe(text)
  })

  test('no charset is UTF-8, else windows-1252, else what its HTML names', async () => {
    expect((await readText('text/plain', 'caf\xE9 \x80')).text).toBe('café €')
    expect((await readText('text/html', '<meta charset="koi8-r"><p>\xF0\xC5\xDE\xD8')).text).toBe(
      'Печь',
    )
    expect(
      (await readText('text/html', '<meta content="text/html; charset=unicode">caf\xE9')).text,
    ).toBe('café')
    expect(
      (await readText('text/html; charset=gbk', '<meta charset=utf-8>\xE5\x93\xA8')).text,
    ).toBe('哨')
    expect((await read(Buffer.from(`${HEAD}\ncaf\xE9`, 'latin1'))).text).toBe('café')
  })

  test('a charset that is not known is counted, unless it is ASCII', async () => {
    const { text, noted } = await readText('text/plain; charset=x-mac-icelandic9', 'caf\xE9')
    expect(text).toBe('café')
    expect(noted).toEqual({
      'replaced: texts in charsets that are not known, read as windows-1252': 1,
    })
    expect((await readText('text/plain; charset=x-other', 'cafe')).noted).toEqual({})
  })

  test('characters that were lost are counted', async () => {
    expect((await readText('text/plain; charset=euc-kr', 'a\xFF')).noted).toEqual({
      'replaced: texts with characters that were lost (U+FFFD)': 1,
    })
  })
})

describe('a header', () => {
  test.each([
    ['raw UTF-8', 'Gr\xC3\xB6\xC3\x9Fe', 'Größe'],
    ['raw Latin-1', 'Gr\xF6\xDFe', 'Größe'],
    ['a word with question marks', '=?utf-8?Q?Caf=C3=A9?_Really??=', 'Café? Really?'],
    ['words split within a character', '=?utf-8?B?YWLD?=\n =?utf-8?B?tmM=?=', 'aböc'],
    [
      'padded words split within a character',
      '=?utf-8?B?QmVoww==?=\n =?UTF-8?B?tnJkZW4=?=',
      'Behörden',
    ],
    ['words of two encodings', '=?utf-8?Q?Beh=C3?= =?utf-8?B?tnJkZW4=?=', 'Behörden'],
    ['words without a space between', '=?utf-8?Q?a_?==?iso-8859-1?Q?=E9?=', 'a é'],
    ['words that are folded within', '=?utf-8?\n B?YWLDtmM=?=', 'aböc'],
    ['lines that are blank but for spaces', 'a\n  \n b', 'a   b'],
    ['words and text', 'Re: =?utf-8?Q?A B?= and =?utf-8*en?Q?caf=C3=A9?=', 'A B and café'],
    ['a charset that browsers lack', '=?utf-7?Q?Caf+AOk-?=', 'Café'],
    ['Japanese', '=?iso-2022-jp?B?GyRCJVElORsoQg==?= =?iso-2022-jp?B?GyRCJW8bKEI=?=', 'パスワ'],
  ])('has %s', async (_, subject, title) => {
    expect((await read(Buffer.from(`Subject: ${subject}\n${HEAD}\nx`, 'latin1'))).title).toBe(title)
  })

  test('has 8-bit text in the charset of the mail', async () => {
    const head = `Subject: \xF0\xC5\xDE\xD8\n${HEAD}Content-Type: multipart/mixed; boundary=b\n\n`
    const mail = `${head}--b\nContent-Type: text/plain; charset="koi8-r"\n\nx\n--b--`
    expect((await read(Buffer.from(mail, 'latin1'))).title).toBe('Печь')
  })

  test('has a name with signs that separate addresses', async () => {
    const { speaker } = await read(
      'From: =?utf-8?Q?Bak=C3=A9r,?= =?utf-8?Q?_Ada_<x@y>?= <ada@a>\nMessage-ID: <1@a>\n\nx',
    )
    expect(speaker).toBe('Bakér, Ada <x@y>')
  })

  test.each([
    ['ada at a.example (Ada Baker)', 'Ada Baker'],
    ['ada at a.example (=?utf-8?Q?Ad=C3=A1?= (the baker))', 'Adá (the baker)'],
    ['ada at a.example', 'ada at a.example'],
    ['ada at a.example (Ada \\(Bakers\\))', 'Ada (Bakers)'],
    ['ada@a.example (Ada \\(Bakers\\))', 'Ada (Bakers)'],
    ['ada@a.example (Ada Baker)', 'Ada Baker'],
    ['"Ada at work" <ada@a.example>', 'Ada at work'],
    ['Baker, Ada <ada@a.example>', 'Baker, Ada'],
    ['Bo <bo@a.example>, Ada <ada@a.example>', 'Bo'],
    ['bo@a.example, Ada <ada@a.example>', 'bo@a.example'],
  ])('From: %s names %s', async (from, name) => {
    expect((await read(`From: ${from}\nMessage-ID: <1@a>\n\nx`)).speaker).toBe(name)
  })

  test('may stand behind a byte order mark, blank lines and a quoted separator', async () => {
    for (const before of ['\uFEFF', '\n\r\n', '>From - Wed May 01 10:00:00 2024\n', '\uFEFF\n'])
      expect(await read(`${before}${HEAD}\nx`)).toMatchObject({
        externalId: '1@a',
        speaker: 'Ada',
        text: 'x',
      })
  })
})

describe('a text in base64', () => {
  const body = Buffer.from('Hello, größe Öfen!\n').toString('base64')
  test.each([
    [
      'behind which a footer stands',
      `${body}\n_____\nbread list\nbread@a`,
      'Hello, größe Öfen!',
      1,
    ],
    ['behind which a word stands', `${body}\nUnsubscribe`, 'Hello, größe Öfen!', 1],
    [
      'behind which another one stands',
      `${body}\nLS0gCmJyZWFkIGxpc3QK\n`,
      'Hello, größe Öfen!\n-- \nbread list',
      0,
    ],
    ['that is short of padding', body.replaceAll('=', ''), 'Hello, größe Öfen!', 0],
    ['that is not encoded', 'Hello, it is plain.', 'Hello, it is plain.', 0],
  ])('%s', async (_, encoded, text, cut) => {
    const found = await readText('text/plain; charset=utf-8', encoded, 'base64')
    expect(found.text).toBe(text)
    expect(found.noted).toEqual(
      cut ? { 'cut: texts in base64 with a plain footer, which is left out': 1 } : {},
    )
  })
})

describe('soft line breaks', () => {
  const flowed = 'text/plain; charset=utf-8; format=flowed'
  test.each([
    ['join lines', flowed, 'It goes \non \nhere.\nEnd.', 'It goes on here.\nEnd.'],
    [
      'join quoted lines',
      flowed,
      '> it goes \n> on\n>> deeper \n>> too\nNo.',
      '> it goes on\n>> deeper too\nNo.',
    ],
    ['end where the quote does', flowed, '> it goes \nNo.', '> it goes \nNo.'],
    ['spare the signature behind them', flowed, 'x \n-- \nAda', 'x \n-- \nAda'],
    ['spare the signature', flowed, 'x\n\n-- \nAda', 'x\n\n-- \nAda'],
    ['lose their space', `${flowed}; DelSp=yes`, 'bread \nbasket', 'breadbasket'],
    ['unstuff lines', flowed, 'a\n From here\n > no quote', 'a\nFrom here\n> no quote'],
    ['are none in other texts', 'text/plain', 'a \nb', 'a \nb'],
  ])('%s', async (_, type, body, text) => {
    expect((await readText(type, body)).text).toBe(text)
  })
})

describe('parts', () => {
  test('are read if a Content-Type before that of the parts is empty', async () => {
    const mail = `${HEAD}Content-Type: \nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b--`
    expect(await read(mail)).toEqual({
      title: undefined,
      externalId: '1@a',
      speaker: 'Ada',
      text: 'x',
      noted: {},
    })
  })

  test('without the last boundary are read', async () => {
    const found = await read(
      `${HEAD}Content-Type: multipart/mixed; boundary="b"\n\n--b\n\nsee --b here\n--bc`,
    )
    expect(found.text).toBe('see --b here\n--bc')
  })

  test.each(['multipart/mixed', 'multipart/mixed; boundary=other'])(
    'of %s without a boundary are text',
    async (type) => {
      expect((await read(`${HEAD}Content-Type: ${type}\n\n--b\n\nx`)).text).toBe('--b\n\nx')
    },
  )

  test('within parts are read in their own encodings', async () => {
    const plain = 'Content-Type: text/plain; charset=utf-7\n\nCaf+AOk-'
    const html = 'Content-Type: text/html\n\n<p>other</p>'
    const inner = `Content-Type: multipart/alternative; boundary=c\n\n--c\n${plain}\n--c\n${html}\n--c--`
    const found = await readParts('multipart/mixed', inner, 'Content-Type: text/plain\n\nfooter')
    expect(found.text).toBe('Café\n\nfooter')
  })

  test.each([
    ['HI\nHOW ARE YOU?', 'HI\nHOW ARE YOU?'],
    ['Děkujeme.\n\nVaše: objednávka', 'Děkujeme.\n\nVaše: objednávka'],
  ])('without a header and a blank line are text: %j', async (part, text) => {
    expect((await readParts('multipart/mixed', part)).text).toBe(text)
  })

  test('that are texts are all read, also between pictures and beside a signature', async () => {
    const picture = 'Content-Type: image/png; name=a.png\nContent-Disposition: inline\n\nx'
    const found = await readParts(
      'multipart/signed; micalg=sha1',
      '\none',
      picture,
      'Content-Type: text/plain\n\ntwo',
    )
    expect(found).toMatchObject({ text: 'one\n\ntwo', attachments: ['a.png'] })
  })

  test('whose boundary is folded are read', async () => {
    const mail = `${HEAD}Content-Type: multipart/mixed;\n boundary="=_alt\n 006F_="\n \nX: y\n\n--=_alt 006F_=\n\nx\n--=_alt 006F_=--`
    expect((await read(mail)).text).toBe('x')
  })

  test.each([
    'boundary*0="a"; boundary*1="b c"',
    'boundary*0="a";\n boundary*1="b c"',
    'boundary="ab\\ c"',
  ])('whose boundary is written as %s are read', async (boundary) => {
    const mail = `${HEAD}Content-Type: multipart/mixed; ${boundary}\n\n--ab c\n\nx\n--ab c--`
    expect((await read(mail)).text).toBe('x')
  })

  test('that are mails are text, also if they are attached', async () => {
    const mail =
      'From: Bo <bo@a>\nSubject: =?utf-8?Q?Caf=C3=A9?=\n Oven\nDate: 1 May 2024 10:00 +0200\nX: y\n\nIt smells of gas.'
    const attached = `Content-Type: message/rfc822\nContent-Disposition: attachment; filename=a.eml\n\n${mail}`
    expect((await readParts('multipart/mixed', '\nSee below.', attached)).text).toBe(
      'See below.\n\nFrom: Bo <bo@a>\nSubject: Café Oven\nDate: 1 May 2024 10:00 +0200\n\nIt smells of gas.',
    )
    const global = `Content-Type: message/global\n\n${mail}`
    expect((await readParts('multipart/mixed', global)).text).toMatch(
      /Subject: Café Oven.*It smells of gas\.$/s,
    )
    const encoded = `Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n${Buffer.from(mail).toString('base64')}`
    expect((await readParts('multipart/mixed', encoded, '\nend')).text).toMatch(
      /It smells of gas\.\n+end$/,
    )
    expect((await readParts('multipart/digest', `\n${mail}`)).text).toMatch(
      /Subject: Café Oven.*It smells of gas\.$/s,
    )
  })

  test('that are mails within 50 others are text, and deeper ones are counted', async () => {
    const within = (levels: number) => `Content-Type: message/rfc822\n\n`.repeat(levels)
    const part = (levels: number) => `${within(levels)}\nLevel ${levels}.`
    const { text, noted } = await readParts(
      'multipart/mixed',
      part(50),
      part(51),
      part(20_000),
      part(1),
    )
    expect(text?.match(/Level \d+\./g)).toEqual(['Level 50.', 'Level 1.'])
    expect(noted).toEqual({ [TOO_DEEP]: 2 })
  })

  test('that are mails deep in a large mail are counted if they are encoded, and so copied', async () => {
    const within = 'Content-Type: message/rfc822\n'
    const { text, noted } = await readParts(
      'multipart/mixed',
      `${`${within}\n`.repeat(40)}\ndeep`,
      `${`${within}\n`.repeat(39)}${within}Content-Transfer-Encoding: base64\n\nCmRlZXBlcg==`,
      `\n${'x'.repeat(8_000_000)}`,
    )
    expect([/^deep\s+xx/.test(text ?? ''), noted]).toEqual([true, { [TOO_DEEP]: 1 }])
  })

  test('that name no subtype are text, and attached texts are files', async () => {
    expect((await readText('text', 'x')).text).toBe('x')
    const file = 'Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nno'
    expect(await readParts('multipart/mixed', '\nyes', file)).toMatchObject({
      text: 'yes',
      attachments: ['a.txt'],
    })
  })

  test.each([
    ['text/plain', 'Not a header: it\n\ntwo'],
    ['text/html', '<p>Not a header: it</p><p>two</p>'],
  ])('%s begins after a blank line that has a space', async (type, body) => {
    const own = `${HEAD}X: y\n \n folded\nContent-Type: ${type}\n \r\n${body}`
    expect((await read(own)).text?.replace(/\s+/g, ' ')).toBe('Not a header: it two')
  })

  test('a header without a blank line ends at the boundary', async () => {
    const own = `${HEAD}Content-Type: multipart/mixed; boundary=b\nX: y\n folded\n--b\n\nx\n--b--`
    expect((await read(own)).text).toBe('x')
    expect((await readParts('multipart/mixed', 'Content-Type: text/plain', '\nx')).text).toBe('x')
  })
})

describe('of alternatives', () => {
  const html = 'Content-Type: text/html\n\n<table><tr><td>Total</td><td>42</td></tr></table>'
  const plain = (text: string) => `Content-Type: text/plain\n\n${text}`
  const of = (type: string, ...parts: string[]) =>
    `Content-Type: multipart/${type}; boundary=${type}\n\n${parts.map((part) => `--${type}\n${part}\n`).join('')}--${type}--`

  test.each([
    ['the plain text is read', [of('alternative', plain('plain'), html)], 'plain'],
    [
      'HTML is read beside a blank text',
      [of('alternative', plain(' '), html), plain('footer')],
      'Total 42\n\nfooter',
    ],
    ['the first is read', [of('alternative', html, plain('plain'))], 'Total 42'],
    [
      'all parts of one are read',
      [of('alternative', of('related', html, html))],
      'Total 42\n\nTotal 42',
    ],
    [
      'a part of several is not read beside a text',
      [of('alternative', plain('plain'), of('related', html))],
      'plain',
    ],
    [
      'HTML and plain text that are none are both read',
      [html, plain('footer')],
      'Total 42\n\nfooter',
    ],
  ])('%s', async (_, parts, text) => {
    expect((await readParts('multipart/mixed', ...parts)).text?.replace(/\n+/g, '\n\n')).toBe(text)
  })
})

test('a long quoted-printable text is whole, although it is decoded in pieces', async () => {
  const line = 'caf=C3=A9 at =\r\nsix =3D '
  const { text } = await readText(
    'text/plain; charset=utf-8',
    line.repeat(60_000),
    'quoted-printable',
  )
  expect(text).toBe('café at six = '.repeat(60_000).trim())
})
