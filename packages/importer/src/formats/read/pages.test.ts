// Tests that an import says if it lacks pages of an answer. (Formats read the records in them.)
import assert from 'node:assert/strict'
import { it } from 'vitest'
import { createExternalSort } from '../../gather/external-sort.ts'
import { readGathered } from '../../gather/gather-threads.ts'
import { formats } from '../formats.ts'
import { inputFile } from '../read-all.test-support.ts'

/** Returns the warnings and how many threads were read. */
async function importOf(format: string, pages: readonly unknown[]) {
  const files = pages.map((page, at) => inputFile(`${at}.json`, page))
  const found = formats.find(({ name }) => name === format)
  assert(found)
  const openSort = () =>
    createExternalSort({ folder: '/tmp', signal: new AbortController().signal })
  const sorted = { total: 0, done: 0 }
  const options = { map: new Map(), set: new Map() }
  const warnings = []
  let threads = 0
  for await (const list of readGathered(found, files, options, { openSort, sorted }))
    for (const event of list) {
      if (event.kind === 'piece') threads += 1
      if (event.kind === 'warning') warnings.push(event.reason.replace(/ of an answer .*/, ''))
    }
  return [threads, ...warnings]
}

const github = (number: number) => ({
  number,
  title: 'Oven',
  html_url: `https://github.com/a/b/issues/${number}`,
  user: { login: 'ada' },
})
const elsewhere = (number: number) => ({
  ...github(number),
  html_url: `https://github.com/a/c/issues/${number}`,
})
const jira = (key: number) => ({ key: `B-${key}`, fields: { summary: 'Oven', comment: {} } })
const zendesk = (id: number) => ({ id, subject: 'Oven', requester_id: 1, comments: [] })
const linear = (id: number) => ({ identifier: `B-${id}`, title: 'Oven', createdAt: '2024-05-01' })
const thread = (id: string) => ({
  snippet: { videoId: 'v', topLevelComment: { id, snippet: { textDisplay: 'Hi' } } },
})
const full = Array.from({ length: 30 }, (_, at) => at + 1)
const issuesOf = (hasNextPage: boolean, ...ids: number[]) => ({
  data: { issues: { nodes: ids.map(linear), pageInfo: { hasNextPage } } },
})

it.each<[string, unknown[], (number | string)[]]>([
  ['github', [{ total_count: 2, items: [1, 2].map(github) }], [2]],
  ['github', [{ total_count: 3, items: [1, 2].map(github) }], [2, 'only 2 of 3 records']],
  [
    'github',
    [
      { items: [1].map(github), total_count: 2 },
      { items: [2].map(github), total_count: 2 },
    ],
    [2],
  ],
  ['github', [[1, 2].map(github)], [2]],
  ['github', [full.map(github)], [30, 'perhaps only the first 30 issues']],
  ['github', [full.map(github), [31].map(github)], [31]],
  ['github', [full.map(github), [31].map(elsewhere)], [31, 'perhaps only the first 30 issues']],
  ['jira', [{ startAt: 0, total: 5_000, issues: [jira(1)] }], [1, 'only 1 of 5,000 issues']],
  [
    'jira',
    [{ issues: [jira(1)], isLast: false, nextPageToken: 'a' }],
    [1, 'only the first 1 issues'],
  ],
  [
    'jira',
    [
      { issues: [jira(1)], isLast: false },
      { issues: [jira(2)], isLast: true },
    ],
    [2],
  ],
  [
    'zendesk',
    [{ tickets: [zendesk(1)], next_page: 'https://a.example/?page=2', count: 3 }],
    [1, 'only 1 of 3 tickets'],
  ],
  [
    'zendesk',
    [{ tickets: [zendesk(1)], next_page: 'https://a.example/?t=2', count: 1, end_of_stream: true }],
    [1],
  ],
  [
    'zendesk',
    [
      {
        tickets: [zendesk(1)],
        next_page: 'https://a.example/?t=2',
        count: 1,
        end_of_stream: false,
      },
    ],
    [1, 'only the first 1 tickets'],
  ],
  [
    'zendesk',
    [{ tickets: [zendesk(1)], users: [], meta: { has_more: true }, links: { next: 'b' } }],
    [1, 'only the first 1 tickets'],
  ],
  ['zendesk', [{ tickets: [zendesk(1)], meta: { has_more: false }, links: { next: 'b' } }], [1]],
  [
    'zendesk',
    [
      { tickets: [zendesk(1)], next_page: 'https://a.example/2.json?page=2' },
      { tickets: [zendesk(2)], next_page: 'https://a.example/3.json?page=2' },
      { tickets: [zendesk(3)], next_page: null, previous_page: 'https://a.example/3.json?page=1' },
    ],
    [3, 'only the first 1 tickets'],
  ],
  ['linear', [issuesOf(true, 1, 2)], [2, 'only the first 2 records']],
  ['linear', [issuesOf(true, 1).data], [1, 'only the first 1 records']],
  ['linear', [issuesOf(true, 1, 2), issuesOf(false, 3)], [3]],
  [
    'youtube',
    [{ nextPageToken: 'a', pageInfo: { totalResults: 1 }, items: [thread('c')] }],
    [1, 'only the first 1 records'],
  ],
  ['youtube', [{ pageInfo: { totalResults: 1 }, items: [thread('c')] }], [1]],
])('%s, case %#: an import says that it lacks pages', async (format, pages, expected) => {
  assert.deepEqual(await importOf(format, pages), expected)
})
