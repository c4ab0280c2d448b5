import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { type FormatOptions, UnreadableFile } from '../format.ts'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { QUOTE_FIELDS, SOURCE_FIELDS } from '../values/thread-fields.ts'
import { csvFormat } from './csv-format.ts'

const set = new Map([['service', 'custom']])
const read = (content: string | Buffer, options: Partial<FormatOptions> = {}) =>
  readAll(csvFormat, [inputFile('rows.csv', content)], { set, ...options })

const tickets = `ticket,subject,id,text,speaker,createdAt,likes
7,"Printer, again",1,"It ""burns""
badly.",ada,2024-05-01 09:30:00,1
8,Mouse,2,It squeaks.,bob,1714555800,2
7,"Printer, again",3,Water?,,2024-05-01T11:30:00+02:00,3
`
const mapping = {
  groupBy: 'ticket',
  map: new Map(Object.entries({ title: 'subject', externalId: 'id' })),
}

describe('CSV', () => {
  it('gives a quote for each row, in the source that --group-by names', async () => {
    const { pieces } = await read(tickets, mapping)
    const createdAt = '2024-05-01T09:30:00.000Z'
    const piece = { kind: 'piece', service: 'custom', order: '' }
    const printer = {
      ...piece,
      externalId: '7',
      fields: { title: 'Printer, again', placeholderTitle: '7' },
    }
    assert.deepEqual(pieces, [
      {
        ...printer,
        quotes: [{ text: 'It "burns"\nbadly.', externalId: '1', speaker: 'ada', createdAt }],
        place: { path: 'rows.csv', line: 2 },
      },
      {
        ...piece,
        externalId: '8',
        fields: { title: 'Mouse', placeholderTitle: '8' },
        quotes: [{ text: 'It squeaks.', externalId: '2', speaker: 'bob', createdAt }],
        place: { path: 'rows.csv', line: 4 },
      },
      {
        ...printer,
        quotes: [{ text: 'Water?', externalId: '3', createdAt }],
        place: { path: 'rows.csv', line: 5 },
      },
    ])
  })

  it('names the columns that it does not read', async () => {
    const { notes } = await read(tickets, mapping)
    const given = new Set(['service', 'title', 'text', 'externalId', 'speaker', 'createdAt'])
    const free = [...SOURCE_FIELDS, ...QUOTE_FIELDS].filter(
      (name) => !given.has(name) && name !== 'username',
    )
    const fields = [...new Set(free)].join(', ')
    const reason = `ignored column likes (take it with --map upVotes=likes; fields: ${fields})`
    assert.deepEqual(notes, [{ kind: 'warning', reason, place: { path: 'rows.csv', line: 1 } }])
  })

  it('reads no values that databases and spreadsheets write in place of one', async () => {
    const rows = [
      '="007",\\N,a',
      '1,="8",="a" is not ="b"',
      '#N/A,,b',
      '#REF!,,c',
      '2,,#hot!',
      'Err:502,,d',
      '3,#¡VALOR!,e',
    ]
    const { pieces, rejected } = await read(`externalId,replyingTo,text\n${rows.join('\n')}\n`)
    assert.deepEqual(
      pieces.flatMap(({ quotes }) => quotes),
      [
        { externalId: '007', text: 'a' },
        { externalId: '1', replyingTo: '8', text: '="a" is not ="b"' },
        { externalId: '2', text: '#hot!' },
      ],
    )
    assert.deepEqual(
      rejected.map(({ reason }) => reason),
      [
        'externalId has an error',
        'externalId has an error',
        'externalId has an error',
        'replyingTo has an error',
      ].map(
        (reason, at) =>
          `${reason} of a spreadsheet: ${['#N/A', '#REF!', 'Err:502', '#¡VALOR!'][at]}.`,
      ),
    )
  })

  it('reads no field from a column without a name, as pandas writes it for its index', async () => {
    const { pieces } = await read(',externalId,text\n0,7,a\n')
    assert.deepEqual(pieces[0]?.fields, { placeholderTitle: 'a' })
    assert.deepEqual(pieces[0]?.quotes, [{ externalId: '7', text: 'a' }])
  })

  it('reads an id that pandas wrote as a decimal number as the whole number', async () => {
    const { pieces } = await read('thread,externalId,text,replyingTo\n1.0,7,a,\n1,8,b,7.0\n', {
      groupBy: 'thread',
    })
    assert.deepEqual(
      pieces.map(({ externalId, quotes }) => [
        externalId,
        quotes[0]?.externalId,
        quotes[0]?.replyingTo,
      ]),
      [
        ['1', '7', undefined],
        ['1', '8', '7'],
      ],
    )
  })

  it('says that no column gives titles or speakers, and which may', async () => {
    const { notes } = await read('externalId,text,Author,It is\n1,a,b,c\n')
    const [ignored, ...others] = notes.map(({ reason }) => reason)
    assert.match(
      ignored ?? '',
      /^ignored columns Author, It is \(take one with --map speaker=Author; fields: .*speaker/,
    )
    assert.deepEqual(others, [
      'no column gives title, so the first line of the text stands for it (--map title=COLUMN)',
      'no column gives speaker (--map speaker=Author)',
    ])
  })

  it('gives each row a source of its own without --group-by', async () => {
    const { pieces } = await read(
      'externalId,text,createdAt,source.score,score\nr1,"Good.\nVery.",2024-05-01,4,5\n',
    )
    const createdAt = '2024-05-01T00:00:00.000Z'
    assert.deepEqual(
      pieces.map(({ externalId, fields, quotes }) => ({ externalId, fields, quotes })),
      [
        {
          externalId: 'r1',
          fields: { placeholderTitle: 'Good.', createdAt, score: 4 },
          quotes: [{ text: 'Good.\nVery.', externalId: 'r1', createdAt, score: 5 }],
        },
      ],
    )
  })

  it('skips a row without text, and counts it, unless no column has texts', async () => {
    const { pieces, notes } = await read('externalId,title,text\nr1,A title, \n')
    assert.deepEqual(pieces, [])
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['no column gives speaker (--map speaker=COLUMN)', 'rows without text'],
    )
    const titles = await read('externalId,title\nr1,A title\n')
    assert.deepEqual(
      titles.pieces.map(({ fields, quotes }) => [fields.title, quotes]),
      [['A title', []]],
    )
  })

  it('names the line of a row, whatever line ends stand in quotes before it', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const rows = [
        'externalId,text',
        `1,"a${end}b${end}c"`,
        '',
        `2,"d${end}e",more`,
        '3,f',
        '4,g,more',
      ]
      const { pieces, rejected } = await read(rows.join(end))
      const lines = [...pieces, ...rejected].map(({ place }) => place.line)
      assert.deepEqual(lines, [2, 8, 6, 9])
    }
  })

  it('rejects a row with a wrong number of fields', async () => {
    const rows = ['1,a', '1,a,b,c', '2,b,c']
    const { pieces, rejected } = await read(`externalId,text,title\n${rows.join('\n')}\n`)
    assert.equal(pieces.length, 1)
    assert.deepEqual(
      rejected.map(({ reason, place, record }) => [reason, place.line, record]),
      [
        ['The row has 2 fields, and the header has 3.', 2, `externalId,text,title\n${rows[0]}`],
        ['The row has 4 fields, and the header has 3.', 3, `externalId,text,title\n${rows[1]}`],
      ],
    )
  })

  it('refuses a header that is longer than 64 KiB, which each rejected row would repeat', async () => {
    const header = (length: number) => 'externalId,text,'.padEnd(length - 1, 'x')
    const { rejected } = await read(`${header(65_536)}\n1,a\n`)
    assert.equal(rejected.length, 1)
    const reading = read(`${header(65_537)}\n1,a\n`)
    await assert.rejects(reading, /The header of rows.csv has 65537 bytes. At most 65536 are read/)
  })

  it('reads what programs write for no date as the moment 0, which is left out later', async () => {
    const zeros = [
      '1970-01-01T00:00:00Z',
      '0000-00-00 00:00:00',
      '0',
      '1/1/1970 0:00',
      '0001-01-01',
    ]
    const dates = [...zeros, '1970-01-01T00:00:01Z', '2001-01-01']
    const rows = dates.map((date, at) => `${at},a,${date}\n`)
    const { pieces } = await read(`externalId,text,createdAt\n${rows.join('')}`, {
      dateFormat: 'D/M/Y',
    })
    const found = pieces.map(({ fields, quotes: [quote] }) => [fields.createdAt, quote?.createdAt])
    const old = ['1970-01-01T00:00:01.000Z', '2001-01-01T00:00:00.000Z']
    const none = zeros.map(() => '1970-01-01T00:00:00.000Z')
    assert.deepEqual(
      found,
      [...none, ...old].map((date) => [date, date]),
    )
  })

  it('rejects a row without an id, or with a wrong date or number', async () => {
    const rows = [',a,2024-05-01,1', '2,b,01/02/2024,1', '3,c,2024-05-01,many', '4,d,2024-05-01,1']
    const { pieces, rejected } = await read(`externalId,text,createdAt,score\n${rows.join('\n')}\n`)
    assert.equal(pieces.length, 1)
    const head = 'externalId,text,createdAt,score\n'
    assert.deepEqual(
      rejected.map(({ reason, place, record }) => [reason, place.line, record]),
      [
        ['The column that identifies the source is empty.', 2, head + rows[0]],
        [
          'createdAt needs --date-format: 01/02/2024 is 2024-02-01 by --date-format D/M/Y, ' +
            'or 2024-01-02 by --date-format M/D/Y.',
          3,
          head + rows[1],
        ],
        ['score is not a number: many.', 4, head + rows[2]],
      ],
    )
  })

  it('rejects a row whose service the API does not know, and --set service with such a value at once', async () => {
    const { rejected } = await read('externalId,text,service\n1,a,myspace\n', { set: new Map() })
    assert.match(rejected[0]?.reason ?? '', /^service must be one of: x, zendesk/)
    const set = new Map([['service', 'myspace']])
    await assert.rejects(
      read('externalId,text\n1,a\n', { set }),
      /--set service=myspace: .* one of x, zendesk/,
    )
  })

  it('rejects a row whose quote is not closed, after all rows before it', async () => {
    const { pieces, rejected } = await read('externalId,text\n1,a\n2,"b\n3,c\n')
    assert.deepEqual([pieces.length, rejected.length], [1, 1])
    assert.match(rejected[0]?.reason ?? '', /Is a quote missing\?/)
    assert.equal(rejected[0]?.record, 'externalId,text\n2,"b\n3,c\n')
  })

  it('finds the delimiter in the header, and reads any line break', async () => {
    for (const [delimiter, end] of [
      [',', '\r\n'],
      [';', '\n'],
      ['|', '\n'],
      ['\t', '\r'],
    ] as const) {
      const rows = [
        ['externalId', '"text, or; what"'],
        ['1', '"a,b;c\td"'],
      ]
        .map((row) => row.join(delimiter))
        .join(end)
      const { pieces } = await read(rows, { map: new Map([['text', 'text, or; what']]) })
      assert.equal(pieces[0]?.quotes[0]?.text, 'a,b;c\td')
    }
  })

  it('reads the line sep=; of Excel, which names the delimiter', async () => {
    for (const [first, end] of [
      ['sep=;', '\r\n'],
      ['"SEP=;"', '\n'],
      ['sep=;;;', '\n'],
    ]) {
      const content = [first, 'externalId;text', '1;a, b', '2;c;d'].join(end)
      const { pieces, rejected } = await read(content)
      assert.deepEqual([pieces[0]?.quotes[0]?.text, pieces[0]?.place.line], ['a, b', 3])
      assert.equal(rejected[0]?.place.line, 4)
      assert.ok(await recognises(csvFormat, inputFile('a.csv', content)))
    }
  })

  it('skips a header that stands in the middle, because files were joined', async () => {
    const { pieces, noted } = await read(
      '"externalId","text"\n1,a\n\ufeff"externalId","text"\nexternalId,text\n2,b\n',
    )
    assert.equal(pieces.length, 2)
    assert.equal(noted['skipped: rows that repeat the header'], 2)
  })

  it('reads quotes that a backslash escapes, if the beginning of the file shows that they are', async () => {
    const { quotes } = await read(
      'externalId,text,title\n1,"ends with \\"","a\\\\b"\n2,"\\"also\\" fine",""\n',
    )
    assert.equal(quotes('1')[0]?.text, 'ends with "')
    assert.equal(quotes('2')[0]?.text, '"also" fine')
    const doubled = await read('externalId,text,title\n1,"C:\\",b\n2,"""a\\""b""",c\n')
    assert.deepEqual(
      [doubled.quotes('1')[0]?.text, doubled.quotes('2')[0]?.text],
      ['C:\\', '"a\\"b"'],
    )
  })

  it('rejects a row whose quotes are neither doubled nor escaped, because its text would be wrong', async () => {
    const { pieces, rejected } = await read('externalId,text\n1,"a "b" c"\n2,d\n')
    assert.deepEqual([pieces.length, rejected[0]?.place.line], [1, 2])
    assert.equal(rejected[0]?.reason, 'A quotation mark within quotation marks is not doubled.')
  })

  it('finds columns in any case, and refuses to choose one of several', async () => {
    const { pieces } = await read(
      'External ID,TEXT,created_at,Subject,subject\n1,a,2024-05-01,b,c\n',
      {
        map: new Map([['title', 'subject']]),
      },
    )
    const { externalId, fields, quotes } = pieces[0] ?? {}
    assert.deepEqual(
      [externalId, fields?.title, quotes?.[0]?.createdAt],
      ['1', 'c', '2024-05-01T00:00:00.000Z'],
    )
    for (const header of ['externalId,text,text', 'externalId,Text,TEXT'])
      await assert.rejects(read(`${header}\n1,a,b\n`), /rows.csv has more than one column text/i)
    assert.equal((await read('externalId,text,,\n1,a,,\n')).pieces.length, 1)
  })

  it('ignores a separator at the end of the header, or of rows', async () => {
    for (const content of [
      'externalId;text;\n1;a\n2;b;\n',
      'externalId;text\n1;a;\n2;b; ;\n',
      'externalId;text;;\n1;a;;\n2;b;;\n',
    ]) {
      const { pieces, rejected } = await read(content)
      assert.deepEqual([pieces.length, rejected], [2, []])
    }
    assert.equal((await read('externalId;text;\n1;a;b\n2;c\n')).rejected[0]?.place.line, 2)
  })

  it('reads a header with a line end in quotes', async () => {
    const content = '"External\nID";"Text, all of it"\n1;a\n'
    const { pieces } = await read(content, { map: new Map([['text', 'Text, all of it']]) })
    assert.deepEqual(
      [pieces[0]?.externalId, pieces[0]?.quotes[0]?.text, pieces[0]?.place.line],
      ['1', 'a', 3],
    )
    assert.ok(await recognises(csvFormat, inputFile('a.csv', content)))
  })

  it('rejects ids that a spreadsheet rounded, because several become one', async () => {
    const { pieces, rejected } = await read(
      'externalId,text\n1.78612E+18,a\n"1,78612E+18",b\n1786123456789012345,c\n',
    )
    assert.deepEqual([pieces.length, rejected.length], [1, 2])
    assert.equal(
      rejected[0]?.reason,
      'A spreadsheet rounded externalId, so it is lost: 1.78612E+18.',
    )
  })

  it('says an error once that all rows share, with the option that mends it', async () => {
    const rows = 'externalId,text,createdAt\n1,a,5/1/2024\n2,b,5/2/2024\n'
    await assert.rejects(
      read(rows),
      /rows.csv: createdAt needs --date-format: 5\/1\/2024 is .* D\/M\/Y, or .* M\/D\/Y/,
    )
    const { pieces } = await read(rows, { dateFormat: 'M/D/Y' })
    assert.equal(pieces[1]?.quotes[0]?.createdAt, '2024-05-02T00:00:00.000Z')
  })

  it('rejects a file that is damaged, and reads the others', async () => {
    const open = async function* () {
      yield Buffer.from('externalId,text\n1,a\n2,')
      throw new UnreadableFile('a.csv', 'it is damaged.', undefined)
    }
    const files = [{ path: 'a.csv', open }, inputFile('b.csv', 'externalId,text\n4,d\n')]
    const { pieces, rejected } = await readAll(csvFormat, files, { set })
    const ids = pieces.map(({ externalId }) => externalId)
    assert.deepEqual(ids, ['4'])
    assert.equal(rejected[0]?.reason, "The file can't be read: it is damaged.")
  })

  it('reads UTF-16 with a byte order mark', async () => {
    const { pieces } = await read(Buffer.from('\ufeffexternalId,text\n1,Größe 😀\n', 'utf16le'))
    assert.equal(pieces[0]?.quotes[0]?.text, 'Größe 😀')
  })

  it('refuses a file in another encoding, or without a column that it needs', async () => {
    await assert.rejects(
      read(Buffer.from('externalId,text\n1,Größe\n', 'latin1')),
      /rows.csv is not UTF-8/,
    )
    await assert.rejects(read('externalId,text\n1,a\n', { set: new Map() }), /no column service\./)
    await assert.rejects(
      read(tickets, { groupBy: 'thread' }),
      /has no column thread\..* --group-by COLUMN/,
    )
    await assert.rejects(
      read(tickets, { map: new Map([['subject', 'title']]) }),
      /--map names the unknown field subject/,
    )
  })

  it('names all missing columns at once, with a command that gives them', async () => {
    const map = new Map([['speaker', 'full name']])
    await assert.rejects(
      read('full name,body\nada,a\n', { set: new Map(), map }),
      ({ message }: Error) => {
        const [facts, advice] = message.split(' (')
        assert.equal(
          facts,
          'rows.csv has no column service, no column that identifies a thread, no column text. Its columns: full name, body. ' +
            "Example: sluice import rows.csv --map 'speaker=full name' --set service=custom --group-by COLUMN --map text=body",
        )
        assert.match(
          advice ?? '',
          /^--group-by names the column .* --map externalId=COLUMN instead\. .* such as a product or a date\.\)$/,
        )
        return true
      },
    )
  })

  it('reads the example of docs/importing.md without a warning', async () => {
    const example = `ticket,subject,team,message,author,sent,likes,rating,body
7,Printer,Office,1,ada,2024-05-01T09:30:00Z,2,4.5,It burns.
7,Printer,Office,2,bob,2024-05-01 12:00 +02:00,,,Use water?
8,Mouse,Office,1,eve,1714555800,0,-1,"It squeaks,
and loudly."
`
    const ofSource = { title: 'subject', channelName: 'team' }
    const ofQuote = {
      externalId: 'message',
      speaker: 'author',
      createdAt: 'sent',
      upVotes: 'likes',
      score: 'rating',
    }
    const map = new Map(Object.entries({ ...ofSource, ...ofQuote, text: 'body' }))
    const { pieces, notes } = await read(example, { groupBy: 'ticket', map })
    assert.deepEqual(notes, [])
    const shown = pieces.map(({ externalId, fields, quotes: [quote] }) => {
      return [
        externalId,
        fields.title,
        quote?.externalId,
        quote?.createdAt,
        quote?.upVotes,
        quote?.score,
      ]
    })
    assert.deepEqual(shown, [
      ['7', 'Printer', '1', '2024-05-01T09:30:00.000Z', 2, 4.5],
      ['7', 'Printer', '2', '2024-05-01T10:00:00.000Z', undefined, undefined],
      ['8', 'Mouse', '1', '2024-05-01T09:30:00.000Z', 0, -1],
    ])
  })

  it('is recognised by name and header', async () => {
    assert.ok(await recognises(csvFormat, inputFile('a/rows.csv', tickets)))
    assert.ok(await recognises(csvFormat, inputFile('rows.TSV.gz', 'a\tb\n')))
    assert.ok(!(await recognises(csvFormat, inputFile('rows.txt', tickets))))
  })
})
