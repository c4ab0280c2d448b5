// Tests of the format of comments on Google documents, on the recipe of a small bakery.
import { expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { googledocFormat } from './googledoc.ts'

const comment = {
  id: 'AAA1',
  createdTime: '2024-05-01T09:30:00.000Z',
  modifiedTime: '2024-05-01T09:30:00.000Z',
  author: { displayName: 'Ada', me: false },
  content: 'More salt?\nReally?',
  htmlContent: 'More salt?<br>Really?',
  quotedFileContent: { mimeType: 'text/html', value: 'Salt &amp; rye' },
  deleted: false,
  replies: [
    {
      id: 'AAA2',
      createdTime: '2024-05-01T10:30:00.000Z',
      author: { displayName: 'Bo' },
      content: 'Yes',
    },
    {
      id: 'AAA3',
      createdTime: '2024-05-01T11:30:00.000Z',
      author: { displayName: 'Bo' },
      action: 'resolve',
    },
    { id: 'AAA4', createdTime: '2024-05-01T11:30:00.000Z', deleted: true },
  ],
}
const page = (...comments: object[]) => ({ kind: 'drive#commentList', comments })

test('a comment with its replies is a source, in a page, in a list of pages, and alone', async () => {
  for (const content of [page(comment), [page(comment)], comment, [comment]]) {
    const file = inputFile('comments.json', content)
    expect(await recognises(googledocFormat, file)).toBe(true)
    const found = await readAll(googledocFormat, [file])
    expect(found.pieces[0]).toMatchObject({
      service: 'googledoc',
      externalId: 'AAA1',
      fields: {
        title: 'More salt?',
        placeholderTitle: 'Salt & rye',
        description: 'Salt & rye',
        createdAt: '2024-05-01T09:30:00.000Z',
      },
    })
    expect(found.quotes('AAA1')).toEqual([
      {
        text: 'More salt?\nReally?',
        externalId: 'AAA1',
        speaker: 'Ada',
        createdAt: '2024-05-01T09:30:00.000Z',
      },
      {
        text: 'Yes',
        externalId: 'AAA2',
        speaker: 'Bo',
        createdAt: '2024-05-01T10:30:00.000Z',
        replyingTo: 'AAA1',
      },
    ])
    expect(found.noted).toEqual({
      'skipped: replies that only resolve or reopen a comment': 1,
      'skipped: comments that were deleted': 1,
    })
  }
})

test('reads version 2 of the API', async () => {
  const old = {
    commentId: 'AAA1',
    createdDate: '2024-05-01T09:30:00.000Z',
    author: { displayName: 'Ada' },
    content: 'More salt?',
    context: { type: 'text/html', value: 'Salt' },
    replies: [{ replyId: 'AAA2', createdDate: '2024-05-01T10:30:00.000Z', content: 'Yes' }],
  }
  const file = inputFile('a.json', { kind: 'drive#commentList', items: [old] })
  expect(await recognises(googledocFormat, file)).toBe(true)
  const found = await readAll(googledocFormat, [file])
  expect(found.quotes('AAA1').map(({ externalId }) => externalId)).toEqual(['AAA1', 'AAA2'])
})

test('of two copies the one that was edited last comes last, a deleted comment keeps its replies', async () => {
  const edited = {
    ...comment,
    content: 'More rye?',
    modifiedTime: '2024-06-01T09:30:00.000Z',
    replies: [],
  }
  const gone = {
    ...comment,
    id: 'B',
    content: undefined,
    htmlContent: undefined,
    author: undefined,
    deleted: true,
  }
  const found = await readAll(googledocFormat, [
    inputFile('a.json', page(edited, { ...comment, replies: [] }, gone)),
  ])
  expect(found.quotes('AAA1').map(({ text }) => text)).toEqual(['More salt?\nReally?', 'More rye?'])
  expect(found.quotes('B').map(({ text }) => text)).toEqual(['Yes'])
  expect(found.pieces.find(({ externalId }) => externalId === 'B')?.fields.title).toBe(undefined)
})

test('rejects a comment without an id', async () => {
  const { rejected } = await readAll(googledocFormat, [inputFile('a.json', page({ content: 'x' }))])
  expect(rejected.map(({ reason }) => reason)).toEqual(['a comment without an `id`'])
})
