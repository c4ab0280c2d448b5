import assert from 'node:assert/strict'
import { makeZip } from '@sluice/test-support'
import { describe, it } from 'vitest'
import type { FormatOptions } from '../format.ts'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { csvFormat } from './csv-format.ts'
import { spreadsheetFormat } from './spreadsheet-format.ts'

const set = new Map([['service', 'custom']])
const read = (
  path: string,
  files: Record<string, string | Buffer>,
  options: Partial<FormatOptions> = {},
) => readAll(spreadsheetFormat, [inputFile(path, makeZip(files))], { set, ...options })

const STYLES = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[$-407]d\\.\\ mmm\\ yy"/>
  <numFmt numFmtId="165" formatCode="0.0&quot;days&quot;"/></numFmts>
  <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
  <cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>`

/** A workbook of Excel with these sheets, by their names. */
function xlsx(
  sheets: Record<string, string>,
  strings: readonly string[] = [],
  workbookPr = '',
): Record<string, string> {
  const names = Object.keys(sheets)
  const list = names.map((name, at) => {
    const state = name.startsWith('hidden') ? ' state="hidden"' : ''
    return `<sheet name="${name}" sheetId="${at + 1}"${state} r:id="rId${at + 1}"/>`
  })
  const targets = names.map(
    (_, at) => `<Relationship Id="rId${at + 1}" Target="/xl/worksheets/sheet${at + 1}.xml"/>`,
  )
  const files = names.map((name, at) => [
    `xl/worksheets/sheet${at + 1}.xml`,
    `<?xml version="1.0"?><worksheet>${sheets[name]}</worksheet>`,
  ])
  return {
    '[Content_Types].xml': '<Types/>',
    'xl/workbook.xml': `<workbook>${workbookPr}<sheets>${list.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${targets.join('')}</Relationships>`,
    'xl/styles.xml': STYLES,
    'xl/sharedStrings.xml': `<sst>${strings.map((text) => `<si>${text}</si>`).join('')}</sst>`,
    ...Object.fromEntries(files),
  }
}

/** A row of cells with texts. An empty text is no cell. */
function row(number: number, ...texts: string[]): string {
  const cells = texts.map((text, at) => {
    const reference = `${String.fromCharCode(65 + at)}${number}`
    return text === '' ? '' : `<c r="${reference}" t="inlineStr"><is><t>${text}</t></is></c>`
  })
  return `<row r="${number}">${cells.join('')}</row>`
}

describe('A workbook of Excel gives', () => {
  it('a quote for each row, with texts, numbers and dates as they are shown', async () => {
    const strings = [
      '<t>externalId</t>',
      '<r><t xml:space="preserve">rich </t></r><r><t>&lt;text&gt;</t></r><rPh><t>x</t></rPh>',
    ]
    const data = `<sheetData>
      <row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="str"><v>Text</v></c><c r="C2" t="inlineStr"><is><t>created</t><t> at</t><rPh sb="0" eb="1"><t>x</t></rPh></is></c>
        <c r="D2" t="str"><v>score</v></c><c r="F2" t="str"><v>title</v></c></row>
      <row r="3"><c r="A3"><v>7</v></c><c r="B3" t="s"><v>1</v></c><c r="C3" s="1"><v>45413.395833333336</v></c><c r="D3" s="3"><v>4.5</v></c>
        <c r="E3" t="e"><v>#N/A</v></c><c r="F3" t="str"><f>A3</f><v>a_x000D_\nb_x000d_c_x005F_x000D_</v></c></row>
      <row><c t="n"><v>1786123456789012345</v></c><c t="b"><v>1</v></c></row>
      <row r="6"><c r="A6"><v>8</v></c><c r="B6" t="str"><v>b</v></c><c r="C6" s="2"><v>45413</v></c></row>
      <row r="7"><c r="A7"><v>9</v></c><c r="B7" s="2" t="s"><v>0</v></c><c r="C7" s="1" t="d"><v>2024-05-01T09:30:00</v></c></row>
    </sheetData>`
    const { pieces, rejected } = await read('a.xlsx', xlsx({ One: data }, strings))
    const createdAt = '2024-05-01T09:30:00.000Z'
    assert.deepEqual(
      pieces.map(({ externalId, fields, quotes, place }) => [externalId, fields, quotes, place]),
      [
        [
          '7',
          { placeholderTitle: 'rich <text>', title: 'a\nb\nc_x000D_', createdAt },
          [{ externalId: '7', text: 'rich <text>', createdAt, score: 4.5 }],
          { path: 'a.xlsx', line: 3 },
        ],
        [
          '8',
          { placeholderTitle: 'b', createdAt: '2024-05-01T00:00:00.000Z' },
          [{ externalId: '8', text: 'b', createdAt: '2024-05-01T00:00:00.000Z' }],
          { path: 'a.xlsx', line: 6 },
        ],
        [
          '9',
          { placeholderTitle: 'externalId', createdAt },
          [{ externalId: '9', text: 'externalId', createdAt }],
          { path: 'a.xlsx', line: 7 },
        ],
      ],
    )
    assert.equal(
      rejected[0]?.reason,
      'A spreadsheet rounded externalId, so it is lost: 1.7861234567890122E+18.',
    )
    assert.equal(rejected[0]?.format, csvFormat.name)
    const again = await readAll(csvFormat, [inputFile('a.csv', rejected[0]?.record)], { set })
    assert.equal(again.rejected[0]?.reason, rejected[0]?.reason)
  })

  it('what Excel Mobile wrote in UTF-16, and one line end for each', async () => {
    const data = `<sheetData>${row(1, 'externalId', 'text')}${row(2, '1', 'ö_x000D_\r\nß')}</sheetData>`
    const files = Object.entries(xlsx({ One: data }))
    const utf16 = files.map(([name, xml]) => [name, Buffer.from(`\uFEFF${xml}`, 'utf16le')])
    const { pieces } = await read('a.xlsx', Object.fromEntries(utf16))
    assert.deepEqual(pieces[0]?.quotes[0]?.text, 'ö\nß')
  })

  it('dates in the zone of --timezone, also of workbooks that count from 1904', async () => {
    const data = `<sheetData>${row(1, 'externalId', 'text', 'createdAt')}<row r="2"><c r="A2" t="str"><v>1</v></c>
      <c r="B2" t="str"><v>a</v></c><c r="C2" s="1"><v>43951.395833333336</v></c></row></sheetData>`
    const files = xlsx({ One: data }, [], '<workbookPr date1904="1"/>')
    const { pieces } = await read('a.xlsx', files, { timezone: 'Europe/Berlin' })
    assert.equal(pieces[0]?.quotes[0]?.createdAt, '2024-05-01T07:30:00.000Z')
  })

  it('no date of a time or a duration, and a rejected row for an error or a formula without its result', async () => {
    const styles = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/></numFmts>
      <cellXfs><xf numFmtId="0"/><xf numFmtId="20"/><xf numFmtId="164"/><xf numFmtId="22"/></cellXfs></styleSheet>`
    const rows = [
      's="1"><v>0.5</v>',
      's="2"><v>1.5</v>',
      't="e"><v>#N/A</v>',
      's="3"><f>NOW()</f>',
      's="3"><f>A1</f><v>45413</v>',
    ]
    const cells = rows.map(
      (rest, at) => `<row><c><v>${at}</v></c><c t="str"><v>a</v></c><c ${rest}</c></row>`,
    )
    const data = `<sheetData>${row(1, 'externalId', 'text', 'createdAt')}${cells.join('')}</sheetData>`
    const { pieces, rejected } = await read('a.xlsx', {
      ...xlsx({ One: data }),
      'xl/styles.xml': styles,
    })
    assert.deepEqual(
      rejected.map(({ reason }) => reason),
      [
        'createdAt is not a date, such as 2024-05-01T09:30:00Z: 12:00:00.',
        'createdAt is not a date, such as 2024-05-01T09:30:00Z: 1.5.',
        'createdAt has an error of a spreadsheet: #N/A.',
        'createdAt has an error of a spreadsheet: #CALC!.',
      ],
    )
    assert.equal(pieces[0]?.quotes[0]?.createdAt, '2024-05-01T00:00:00.000Z')
  })

  it('shared texts, also if their file has a name in other case', async () => {
    const data = `<sheetData>${row(1, 'externalId', 'text')}<row><c><v>1</v></c><c t="s"><v>0</v></c></row></sheetData>`
    const { 'xl/sharedStrings.xml': strings = '', ...files } = xlsx({ One: data }, [
      '<t>shared</t>',
    ])
    const { pieces } = await read('a.xlsx', { ...files, 'xl/SharedStrings.xml': strings })
    assert.equal(pieces[0]?.quotes[0]?.text, 'shared')
  })

  it('the value of merged cells for each of their rows, and no row that has nothing else', async () => {
    const rows = [
      row(1, 'A title that is merged'),
      row(2, 'ticket', 'externalId', 'text'),
      row(3, 'T1', '1', 'a'),
    ]
    const data = `<sheetData>${rows.join('')}${row(4, '', '2', 'b')}<row r="5"/>${row(6, 'T2', '3', 'c')}</sheetData>
      <mergeCells><mergeCell ref="A1:C1"/><mergeCell ref="A3:A5"/></mergeCells>`
    const { pieces } = await read('a.xlsx', xlsx({ One: data }), { groupBy: 'Ticket' })
    assert.deepEqual(
      pieces.map(({ externalId, quotes }) => [externalId, quotes[0]?.externalId]),
      [
        ['T1', '1'],
        ['T1', '2'],
        ['T2', '3'],
      ],
    )
  })

  it('the rows of each visible sheet that is a table, and the number of the others', async () => {
    const table = (id: string) =>
      `<sheetData>${row(1, 'externalId', 'text')}${row(2, id, 'a')}</sheetData>`
    const sums = `<sheetData>${row(1, 'Month', 'Sum')}${row(2, 'May', '7')}</sheetData>`
    const sheets = {
      May: table('1'),
      hidden: table('2'),
      Sums: sums,
      June: table('3'),
      Empty: '<sheetData/>',
    }
    const { pieces, noted } = await read('a.xlsx', xlsx(sheets))
    assert.deepEqual(
      pieces.map(({ externalId, place }) => [externalId, place.pointer]),
      [
        ['1', '/May'],
        ['3', '/June'],
      ],
    )
    assert.equal(noted['skipped: sheets that are hidden'], 1)
    assert.equal(noted['skipped: sheets that are no tables of messages: Sums'], 1)
    assert.equal(noted['skipped: sheets that are no tables of messages: Empty'], 1)
    await assert.rejects(
      read('a.xlsx', xlsx({ Sums: sums })),
      /a.xlsx has no column that identifies a thread, no column text/,
    )
    await assert.rejects(
      read('a.xlsx', xlsx({ Empty: '<sheetData/>' })),
      /a.xlsx has no rows below a header, which has more than one cell/,
    )
  })
})

/** A cell of OpenDocument with paragraphs. */
function cell(
  text: string,
  attributes = 'office:value-type="string"',
  name = 'table-cell',
): string {
  const paragraphs = text.split('\n').map((line) => `\n<text:p>${line}</text:p>`)
  return `<table:${name} ${attributes}>${text === '' ? '' : paragraphs.join('')}</table:${name}>`
}

function ods(rows: string): Record<string, string> {
  const style =
    '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
  const hidden = `<table:table table:name="Old" table:style-name="ta2"><table:table-row>${cell('x')}</table:table-row></table:table>`
  return {
    mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
    'content.xml': `<office:document-content>${style}<office:spreadsheet>${hidden}<table:table table:name="One">${rows}</table:table></office:spreadsheet></office:document-content>`,
  }
}

describe('A workbook of OpenDocument gives', () => {
  it('a quote for each row, with repeated and merged cells, dates, numbers and without comments', async () => {
    const float = (value: string) => `office:value-type="float" office:value="${value}"`
    const rows = [
      `<table:table-row table:number-rows-repeated="3">${cell('', 'table:number-columns-repeated="1024"')}</table:table-row>`,
      `<table:table-row>${['ticket', 'externalId', 'text', 'createdAt', 'score'].map((name) => cell(name)).join('')}</table:table-row>`,
      `<table:table-row>${cell('T1', 'office:value-type="string" table:number-rows-spanned="2"')}${cell('1,0', float('1'))}
        ${cell('a<text:s text:c="2"/><text:a>b</text:a><text:ruby-text>no</text:ruby-text><office:annotation><text:p>no</text:p></office:annotation>\nc')}
        ${cell('01.05.24', 'office:value-type="date" office:date-value="2024-05-01T09:30:00"')}${cell('4,5', float('4.5'))}</table:table-row>`,
      `<table:table-row>${cell('', '', 'covered-table-cell')}${cell('2', 'office:value-type="string" table:number-columns-repeated="2"')}</table:table-row>`,
      `<table:table-row table:number-rows-repeated="1048000">${cell('', 'table:number-columns-repeated="1024"')}</table:table-row>`,
    ]
    const { pieces, rejected, noted } = await read('a.ods', ods(rows.join('\n')), {
      groupBy: 'ticket',
    })
    assert.deepEqual(rejected, [])
    assert.deepEqual(
      pieces.map(({ externalId, quotes, place }) => [externalId, quotes, place]),
      [
        [
          'T1',
          [{ externalId: '1', text: 'a  b\nc', createdAt: '2024-05-01T09:30:00.000Z', score: 4.5 }],
          { path: 'a.ods', line: 5, pointer: '/One' },
        ],
        ['T1', [{ externalId: '2', text: '2' }], { path: 'a.ods', line: 6, pointer: '/One' }],
      ],
    )
    assert.equal(noted['skipped: sheets that are hidden'], 1)
  })
})

it('A workbook is recognised by its name or its beginning, and a damaged one is named', async () => {
  for (const [path, files] of [
    ['a.XLSM', { a: '' }],
    ['stdin', xlsx({})],
    ['stdin', ods('')],
  ] as const)
    assert.ok(await recognises(spreadsheetFormat, inputFile(path, makeZip(files, 'stored'))))
  assert.ok(!(await recognises(spreadsheetFormat, inputFile('a.zip', makeZip({ a: '' })))))
  assert.ok(!(await recognises(spreadsheetFormat, inputFile('a.xlsx', 'a,b'))))
  await assert.rejects(
    readAll(spreadsheetFormat, [inputFile('a.xlsx', 'PK\x03\x04')]),
    /a.xlsx is no workbook/,
  )
})

it('A workbook without a sheet of messages is not read beside other files', async () => {
  const workbook = (...names: string[]) =>
    makeZip(xlsx({ One: row(1, ...names) + row(2, 'custom', '1', 'a') }))
  const files = [
    inputFile('sums.xlsx', workbook('year', 'sum', 'tax')),
    inputFile('a.xlsx', workbook('service', 'externalId', 'text')),
  ]
  assert.deepEqual(await filesByFormat(files), { spreadsheet: ['a.xlsx'], unread: ['x/sums.xlsx'] })
})

describe('A small workbook that stands for a large one', () => {
  const header = row(1, 'externalId', 'text')
  const rowsOf = (number: number, make: (at: number) => string) =>
    Array.from({ length: number }, (_, at) => make(at + 2)).join('')
  const ods = (rows: string) => ({
    mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
    'content.xml': `<table name="Q"><table-row><table-cell><p>externalId</p></table-cell><table-cell><p>text</p></table-cell></table-row>${rows}</table>`,
  })
  const cell = (text: string, attributes = '') =>
    `<table-cell${attributes}><p>${text}</p></table-cell>`

  it.each([
    [
      'rows that repeat a text',
      ods(`<table-row number-rows-repeated="1048576">${cell('a')}${cell('b')}</table-row>`),
      'a, sheet Q, row 2: the sheet has more than 10000 rows that repeat one with a text.',
    ],
    [
      'rows of cells that repeat',
      ods(
        rowsOf(
          1_000,
          () => `<table-row>${cell('a', ' number-columns-repeated="16384"')}</table-row>`,
        ),
      ),
      'a, sheet Q, row 612: the sheet has more than 10000000 repeated, merged or empty cells.',
    ],
    [
      'spaces that repeat',
      ods(
        `<table-row><table-cell><p>${'<s c="2000000000"/>'.repeat(2_000)}x</p></table-cell></table-row>`,
      ),
      'a, sheet Q, row 2: the sheet has more than 10000000 repeated, merged or empty cells.',
    ],
    [
      'cells at the edge',
      xlsx({
        S: header + rowsOf(2_000, (at) => `<row r="${at}"><c r="XFD${at}"><v>1</v></c></row>`),
      }),
      'a, sheet S, row 622: the sheet has more than 10000000 repeated, merged or empty cells.',
    ],
    [
      'merged cells that cover each other',
      xlsx({
        S: `${header}${rowsOf(100, (at) => row(at, 'a', 'b'))}<mergeCells>${'<mergeCell ref="A2:B999"/>'.repeat(200_000)}</mergeCells>`,
      }),
      'a, sheet S, row 52: the sheet has more than 10000000 repeated, merged or empty cells.',
    ],
    [
      'merged cells without end',
      xlsx({
        S: `${header}<mergeCells>${'<mergeCell ref="A7:B999"/>'.repeat(500_001)}</mergeCells>`,
      }),
      'a, sheet S, row 7: the sheet has more than 500000 merged cells.',
    ],
  ])('is refused with the bound: %s', async (_, files, message) => {
    const said = `${message} Remove them, or save the sheet as CSV (UTF-8).`
    await assert.rejects(
      read('a', files),
      (error: Error) => error.message === said || assert.fail(error.message),
    )
  })

  it('is refused if its tags nest too deep, and read once if many sheets share its file', async () => {
    await assert.rejects(read('a', xlsx({ S: '<a>'.repeat(1_000_000) })), /nests tags too deep/)
    const files = xlsx({ S: header + row(2, '1', 'a') })
    const twice = '<sheet name="T" r:id="rId1"/></sheets>'
    const workbook = files['xl/workbook.xml']?.replace('</sheets>', twice) ?? ''
    const { pieces } = await read('a', { ...files, 'xl/workbook.xml': workbook })
    assert.equal(pieces.length, 1)
  })

  it('has a row that is too long rejected, and the others read', async () => {
    const long = `<t>${'x'.repeat(1024 * 1024)}</t>`
    const shared = Array.from(
      { length: 40 },
      (_, at) =>
        `<c r="${at < 26 ? '' : 'A'}${String.fromCharCode(65 + (at % 26))}2" t="s"><v>0</v></c>`,
    )
    const sheet = `${header}<row r="2">${shared.join('')}</row>${row(3, '3', 'kept')}`
    const { pieces, rejected } = await read('a', xlsx({ S: sheet }, [long]))
    assert.deepEqual(
      [pieces.length, rejected.map(({ reason, place }) => [reason, place.line])],
      [1, [['The row has more than 33554432 characters.', 2]]],
    )
  })

  it('has empty cells and rows to the edge of the sheet, which are not written out', async () => {
    const rows = `<table-row>${cell('1')}${cell('a')}<table-cell number-columns-repeated="16382"/></table-row>`
    const empty =
      '<table-row number-rows-repeated="1048000"><table-cell number-columns-repeated="16384"/></table-row>'
    const { pieces, rejected } = await read('a', ods(rows.repeat(2_000) + empty))
    assert.deepEqual([pieces.length, rejected], [2_000, []])
  })
})
