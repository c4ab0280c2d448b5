// Tests of the Linear format, on the issues of a small bakery.
import { expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { linearFormat } from './linear.ts'

const header =
  '"ID","Team","Title","Description","Status","Estimate","Priority","Project ID","Project","Creator","Assignee","Labels","Created","Updated"'
const date = 'Wed May 01 2024 09:30:00 GMT+0000 (GMT)'
const row = (description: string, updated = date) =>
  `"OVN-7","Ovens","Cold oven","${description}","Todo","","High","","","ada@a.example","","","${date}","${updated}"`
const comment = {
  id: 'c1',
  body: 'Since six',
  createdAt: '2024-05-01T10:30:00.000Z',
  user: { name: 'bo@a.example', displayName: 'Bo' },
}
const issue = {
  id: 'uuid',
  identifier: 'OVN-7',
  title: 'Cold oven',
  description: 'It is cold',
  url: 'https://linear.app/bakery/issue/OVN-7/cold-oven',
  createdAt: '2024-05-01T09:30:00.000Z',
  updatedAt: '2024-05-03T09:30:00.000Z',
  creator: { name: 'Ada' },
  team: { key: 'OVN', name: 'Ovens' },
  comments: {
    nodes: [
      {
        ...comment,
        id: 'c2',
        body: 'Yes',
        parent: { id: 'c1' },
        createdAt: '2024-05-01T11:30:00.000Z',
      },
      comment,
    ],
  },
}

test('rejects a date that a spreadsheet rewrote, and reads one without a zone as UTC wherever it runs', async () => {
  const rows = ['5/1/2024 9:30', '2024-05-01 09:30:00', '2024-05-01T09:30:00.000Z'].map((text) =>
    row('x').replace(date, text),
  )
  const { pieces, rejected } = await readAll(linearFormat, [
    inputFile('Export.csv', [header, ...rows].join('\n')),
  ])
  expect(rejected.map(({ reason }) => reason)).toEqual([
    'Created is no date of Linear: 5/1/2024 9:30. Was the file saved by a spreadsheet?',
  ])
  expect(pieces.map(({ fields }) => fields.createdAt)).toEqual([
    '2024-05-01T09:30:00.000Z',
    '2024-05-01T09:30:00.000Z',
  ])
})

test('reads the CSV export, in which the row that was updated last comes last', async () => {
  const later = 'Thu May 02 2024 09:30:00 GMT+0000 (GMT)'
  const file = inputFile(
    'Export.csv',
    [header, row('It is warm', later), row('It is ""cold"",\nreally')].join('\n'),
  )
  expect(await recognises(linearFormat, file)).toBe(true)
  const found = await readAll(linearFormat, [file])
  expect(found.pieces[0]).toMatchObject({
    service: 'linear',
    externalId: 'OVN-7',
    fields: { title: 'Cold oven', channelName: 'Ovens', createdAt: '2024-05-01T09:30:00.000Z' },
  })
  expect(found.quotes('OVN-7').map(({ text, speaker }) => [text, speaker])).toEqual([
    ['It is "cold",\nreally', 'ada@a.example'],
    ['It is warm', 'ada@a.example'],
  ])
})

test('reads issues of the API with their comments, however they are wrapped', async () => {
  for (const content of [
    [issue],
    { issues: [issue] },
    { nodes: [issue] },
    { data: { issues: { nodes: [issue] } } },
    [{ data: { team: { issues: { nodes: [issue] } } } }],
    { data: { issue } },
    { data: { issues: { edges: [{ node: issue }] } } },
    [{ ...issue, identifier: 'OVN-1', children: { nodes: [issue, { id: 'i9' }] } }],
    { ...issue, comments: issue.comments.nodes },
  ]) {
    const file = inputFile('issues.json', content)
    expect(await recognises(linearFormat, file)).toBe(true)
    const found = await readAll(linearFormat, [file])
    expect(found.rejected).toEqual([])
    expect(found.pieces[0]?.fields).toMatchObject({
      title: 'Cold oven',
      channelId: 'OVN',
      url: issue.url,
    })
    expect(found.quotes('OVN-7')).toEqual([
      {
        externalId: 'OVN-7',
        text: 'It is cold',
        speaker: 'Ada',
        createdAt: '2024-05-01T09:30:00.000Z',
      },
      { text: 'Since six', speaker: 'Bo', createdAt: '2024-05-01T10:30:00.000Z', externalId: 'c1' },
      {
        text: 'Yes',
        speaker: 'Bo',
        createdAt: '2024-05-01T11:30:00.000Z',
        externalId: 'c2',
        replyingTo: 'c1',
      },
    ])
  }
})

test('reads answers that are in their comments', async () => {
  const answer = { id: 'c9', body: 'Try rye', user: { name: 'Cy' } }
  const nodes = [{ id: 'c8', body: '', children: { nodes: [answer] } }]
  const file = inputFile('issues.json', [{ ...issue, comments: { nodes } }])
  const found = await readAll(linearFormat, [file])
  expect(found.quotes('OVN-7').slice(1)).toEqual([
    { externalId: 'c9', text: 'Try rye', speaker: 'Cy', replyingTo: 'c8' },
  ])
})

test('counts comments that are not in the file, and rejects what is no issue', async () => {
  const part = {
    ...issue,
    comments: { nodes: [{ ...comment, body: '' }], pageInfo: { hasNextPage: true } },
  }
  const found = await readAll(linearFormat, [inputFile('a.json', [part, { title: 'x' }])])
  expect(found.noted).toEqual({
    'skipped: comments without text': 1,
    'skipped: issues whose comments are not all in the file': 1,
  })
  expect(found.rejected).toHaveLength(1)
})
