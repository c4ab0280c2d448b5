// Tests of the Jira format, on the issues of a small bakery.
import { expect, test } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { wordsIn } from './document.ts'
import { jiraFormat } from './jira.ts'

const HEADER =
  'Summary,Issue key,Issue id,Issue Type,Project key,Project name,Reporter,Created,Updated,Labels,Labels,Description,Attachment,Comment,Comment,Comment'
const issue = (cells: Record<string, string>, ...comments: string[]) => {
  const row = {
    Summary: 'Cold oven',
    'Issue key': 'OVEN-7',
    Created: '01/May/24 9:30 AM',
    ...cells,
  }
  const names = HEADER.split(',')
  const all = names.map((name, at) =>
    name === 'Comment'
      ? (comments[at - names.indexOf('Comment')] ?? '')
      : Object.entries(row).find(([own]) => own === name)?.[1],
  )
  return `${HEADER}\n${all.map((cell = '') => `"${cell.replaceAll('"', '""')}"`).join()}\n`
}
const find = (csv: string, options = {}) =>
  readAll(jiraFormat, [inputFile('jira.csv', csv)], options)

test('an issue is a source, and each of its comments is a quote', async () => {
  const details = {
    Reporter: 'Ada',
    'Project key': 'OVEN',
    'Project name': 'Ovens',
    Description: 'Since "six"',
  }
  const csv = issue(
    details,
    '02/May/24 1:05 PM;bo;Yes; at 9;30\nreally',
    '02/May/24 1:05 PM;bo;Really',
  )
  expect(await recognises(jiraFormat, inputFile('a.csv', csv))).toBe(true)
  const { pieces } = await find(csv, { timezone: 'Europe/Berlin' })
  expect(pieces[0]).toMatchObject({
    service: 'custom',
    externalId: 'jira/OVEN-7',
    fields: {
      title: 'Cold oven',
      channelName: 'Ovens',
      channelId: 'OVEN',
      createdAt: '2024-05-01T07:30:00.000Z',
    },
  })
  const createdAt = '2024-05-02T11:05:00.000Z'
  expect(pieces[0]?.quotes).toEqual([
    {
      externalId: 'OVEN-7',
      text: 'Since "six"',
      speaker: 'Ada',
      createdAt: '2024-05-01T07:30:00.000Z',
    },
    {
      externalId: `OVEN-7/${createdAt}/bo`,
      text: 'Yes; at 9;30\nreally',
      speaker: 'bo',
      createdAt,
    },
    { externalId: `OVEN-7/${createdAt}/bo/2`, text: 'Really', speaker: 'bo', createdAt },
  ])
})

test('the later export of an issue comes last, and has the same ids', async () => {
  const files = ['03/May/24 9:00 AM', '02/May/24 9:00 AM'].map((Updated) =>
    inputFile('a.csv', issue({ Updated }, `02/May/24 1:05 PM;bo;Of ${Updated}`)),
  )
  const found = await readAll(jiraFormat, files)
  const [first, last] = found.quotes('jira/OVEN-7')
  expect(first?.externalId).toBe(last?.externalId)
  expect(last?.text).toBe('Of 03/May/24 9:00 AM')
})

test('files stand in for a description, and what is no comment of Jira is a text', async () => {
  const { pieces } = await find(
    issue({ Attachment: '01/May/24 9:31 AM;ada;oven.jpg;https://a.example/1' }, 'Only words'),
  )
  expect(pieces[0]?.quotes.map(({ text, attachments }) => [text, attachments])).toEqual([
    ['', ['oven.jpg']],
    ['Only words', undefined],
  ])
})

test('a date with two readings rejects the issue, unless an option names the order', async () => {
  const csv = issue({ Created: '5/6/2024 16:14' }, '5/7/2024 16:14;bo;Yes')
  const [, row] = csv.split('\n')
  const { rejected } = await find(`${issue({})}${row}\n`)
  expect(rejected[0]?.reason).toMatch(/^A date needs --date-format: 5\/6\/2024 16:14 is/)
  const { pieces } = await find(csv, { dateFormat: 'M/D/Y' })
  expect(pieces[0]?.quotes[0]?.createdAt).toBe('2024-05-07T16:14:00.000Z')
})

test('in CSV of Jira Cloud, ids are the names that the file has of them, in whatever row', async () => {
  const header =
    'Summary,Issue key,Issue id,Reporter,Reporter Id,Watchers,Watchers,Watchers Id,Watchers Id,Comment'
  const rows = [
    'T,A-1,1,Ada,u:1,Bo,,u:2,,01/May/24 9:30 AM;u:3;Ask [~accountid:u:2] or [~accountid:u:9]',
    'T,A-2,2,Cy,u:3,Bo,Di,u:2,,01/May/24 9:31 AM;u:2;Yes',
  ]
  const { pieces } = await find([header, ...rows].join('\n'))
  expect(pieces.map(({ quotes: [quote] }) => [quote?.speaker, quote?.text])).toEqual([
    ['Cy', 'Ask @Bo or [~accountid:u:9]'],
    ['Bo', 'Yes'],
  ])
  expect(pieces[0]?.quotes[0]?.externalId).toBe('A-1/2024-05-01T09:30:00.000Z/u:3')
})

const node = (type: string, ...content: unknown[]) => ({ type, content })
const text = (words: string, href?: string) => ({
  type: 'text',
  text: words,
  ...(href && { marks: [{ type: 'strong' }, { type: 'link', attrs: { href } }] }),
})
const document = node(
  'doc',
  node(
    'paragraph',
    text('Ask '),
    { type: 'mention', attrs: { id: 'u:2', text: '@Bo' } },
    text(' about '),
    text('it', 'https://a.example'),
  ),
  node(
    'bulletList',
    node('listItem', node('paragraph', text('rye'))),
    node('listItem', node('paragraph', text('spelt'))),
  ),
  node(
    'table',
    node(
      'tableRow',
      node('tableCell', node('paragraph', text('7'))),
      node('tableCell', node('paragraph', text('8'))),
    ),
  ),
  node('paragraph', { type: 'date', attrs: { timestamp: '1714521600000' } }, node('hardBreak'), {
    type: 'emoji',
    attrs: { shortName: ':loaf:' },
  }),
  node('mediaSingle', { type: 'media', attrs: { alt: 'oven.png' } }),
)
const written = { created: '2024-05-01T09:30:00.000+0200', updated: '2024-05-02T09:30:00.000+0200' }
const apiIssue = {
  id: '1',
  key: 'OVEN-7',
  self: 'https://a.example/rest/api/3/issue/1',
  fields: {
    ...written,
    summary: 'Cold oven',
    project: { key: 'OVEN', name: 'Ovens' },
    reporter: { accountId: 'u:1', displayName: 'Ada' },
    description: document,
    attachment: [{ filename: 'oven.png' }],
    comment: {
      comments: [
        {
          id: '9',
          author: { displayName: 'Bo' },
          body: document,
          created: '2024-05-01T09:31:00.000+0200',
        },
        {
          id: '10',
          parentId: 9,
          author: { name: 'cy' },
          body: 'h1. Yes',
          created: '2024-05-01T09:32:00.000+0200',
        },
      ],
      total: 2,
    },
  },
}

test('issues of the API are read from searches, one by one, from lists and from lines, with the words of documents', async () => {
  const words = 'Ask @Bo about it (https://a.example)\n- rye\n- spelt\n7\n8\n2024-05-01\n:loaf:'
  const search = { expand: 'names', startAt: 0, total: 1, issues: [apiIssue] }
  for (const content of [search, [search], apiIssue, [apiIssue], `${JSON.stringify(apiIssue)}\n`]) {
    const file = inputFile('search.json', content)
    expect(await recognises(jiraFormat, file)).toBe(true)
    const { pieces, notes, rejected } = await readAll(jiraFormat, [file])
    expect([notes, rejected]).toEqual([[], []])
    expect(pieces).toMatchObject([
      {
        service: 'custom',
        externalId: 'jira/OVEN-7',
        order: '2024-05-02T07:30:00.000Z',
        fields: {
          title: 'Cold oven',
          channelName: 'Ovens',
          channelId: 'OVEN',
          createdAt: '2024-05-01T07:30:00.000Z',
          url: 'https://a.example/browse/OVEN-7',
        },
      },
    ])
    expect(pieces[0]?.quotes).toEqual([
      {
        externalId: 'OVEN-7',
        text: words,
        speaker: 'Ada',
        createdAt: '2024-05-01T07:30:00.000Z',
        attachments: ['oven.png'],
      },
      {
        externalId: '9',
        text: words,
        speaker: 'Bo',
        createdAt: '2024-05-01T07:31:00.000Z',
        attachments: ['oven.png'],
      },
      {
        externalId: '10',
        replyingTo: '9',
        text: 'h1. Yes',
        speaker: 'cy',
        createdAt: '2024-05-01T07:32:00.000Z',
      },
    ])
  }
})

test('an issue has the words of its environment, and names for the ids in its texts', async () => {
  const ada = { name: 'ada', displayName: 'Ada Baker' }
  const fields = {
    summary: 'T',
    reporter: ada,
    description: 'Ask [~ada] or [~cy]',
    environment: 'Mill St',
    comment: {
      comments: [
        {
          id: '1',
          body: '[~accountid:5:b] knows',
          author: { accountId: '5:b', displayName: 'Bo' },
        },
      ],
    },
  }
  const { pieces } = await readAll(jiraFormat, [inputFile('a.json', [{ key: 'A-1', fields }])])
  expect(pieces[0]?.quotes.map(({ text }) => text)).toEqual([
    'Ask @Ada Baker or [~cy]\nMill St',
    '@Bo knows',
  ])
  const csv = 'Summary,Issue key,Issue id,Environment\nT,A-1,1,Mill St\n'
  const ofCsv = await readAll(jiraFormat, [inputFile('a.csv', csv)])
  expect(ofCsv.pieces[0]?.quotes[0]?.text).toBe('Mill St')
})

test('what an answer of the API leaves out is counted', async () => {
  const { comment, ...fields } = apiIssue.fields
  const issues = [
    { ...apiIssue, fields },
    { ...apiIssue, fields: { ...fields, comment: { ...comment, total: 7 } } },
    {
      ...apiIssue,
      fields: {
        ...fields,
        comment,
        worklog: { worklogs: [{ comment: document }, { comment: '' }] },
      },
    },
    { ...apiIssue, key: undefined },
  ]
  const { noted, rejected } = await readAll(jiraFormat, [inputFile('search.json', { issues })])
  expect(noted).toEqual({
    'skipped: issues whose comments are not in the file (search with fields=*all)': 1,
    'skipped: issues whose comments are not all in the file (fetch each alone, /rest/api/2/issue/KEY)': 1,
    'skipped: comments of work logs': 1,
  })
  expect(rejected.map(({ reason }) => reason)).toEqual(['an issue without `key` or `fields`'])
})

test('a document may nest deeper than the stack', () => {
  const deep = `${'{"type":"panel","content":['.repeat(20_000)}{"type":"text","text":"Hi"}${']}'.repeat(20_000)}`
  expect(wordsIn(JSON.parse(deep)).text).toBe('Hi')
})

test('if the dates of all issues need the option, the file is refused with the order that they show', async () => {
  const csv = issue({ Created: '13/05/2024 16:14', Description: 'x'.repeat(70_000) })
  await expect(find(csv)).rejects.toMatchObject({ lacking: ['--date-format D/M/Y'] })
  await expect(find(issue({ Created: '5/6/2024 16:14' }))).rejects.toMatchObject({
    lacking: ['--date-format ORDER'],
  })
  const rows = Array.from({ length: 3 }, () =>
    csv.split('\n')[1]?.replaceAll('x'.repeat(40_000), ''),
  )
  const files = [
    inputFile('a.csv', [HEADER, ...rows, ''].join('\n')),
    inputFile('b.csv', issue({})),
  ]
  expect(await filesByFormat(files)).toEqual({ jira: ['b.csv'], unread: ['x/a.csv'] })
})
