// The smallest export of each format, for the tests of what holds for all of them. It does not
// compile until a new format has a line in EXAMPLES.
import assert from 'node:assert/strict'
import { makeZip } from '@sluice/test-support'
import type { Format } from './format.ts'
import { type FormatName, formats } from './formats.ts'
import { chatDatabase, inputFile } from './read-all.test-support.ts'

const thread = { service: 'custom', externalId: '1', title: 'T', quotes: [{ text: 'a' }] }
const play =
  'Package Name,Star Rating,Review Text,Review Submit Millis Since Epoch\norg.example,5,Good,1714556000000\n'
const review = { type: 'customerReviews', id: '1', attributes: { rating: 5, body: 'Good' } }
const cell = (text: string) => `<table-cell value-type="string"><p>${text}</p></table-cell>`
const row = (...texts: string[]) => `<table-row>${texts.map(cell).join('')}</table-row>`
const content = `<spreadsheet><table>${row('service', 'externalId', 'text')}${row('custom', '1', 'a')}</table></spreadsheet>`

const post = { id_str: '1', full_text: 'Hi', created_at: 'Wed May 01 09:30:00 +0000 2024' }

/** Node before 22.13 has no SQLite. */
const sqlite = await import('node:sqlite').catch(() => undefined)

export type Files = Readonly<Record<string, unknown>>
type Example = Files | `not applicable: ${string}`

/** The smallest export of each format that has a thread: its files by their paths. */
export const EXAMPLES: Readonly<Record<FormatName, Example>> = {
  slack: {
    'users.json': [],
    'channels.json': [{ id: 'C1', name: 'general' }],
    'general/2024-05-01.json': [
      { type: 'message', user: 'U1', text: 'Hi', ts: '1714556000.000100' },
    ],
  },
  discord: {
    'c.json': {
      guild: { id: '7' },
      channel: { id: '8', name: 'general' },
      messages: [{ id: '1', timestamp: '2024-05-01T09:30:00Z', content: 'Hi' }],
    },
    'messages/c8/messages.json': [
      { ID: 2, Timestamp: '2024-05-01 09:30:00', Contents: 'Hi', Attachments: '' },
    ],
  },
  telegram: {
    'result.json': {
      name: 'Ada',
      type: 'personal_chat',
      id: 9,
      messages: [{ id: 1, type: 'message', date_unixtime: '1714556000', text: 'Hi' }],
    },
  },
  zendesk: {
    'tickets.json': {
      tickets: [{ id: 1, subject: 'T', requester_id: 1, comments: [{ id: 2, body: 'Hi' }] }],
    },
  },
  x: { 'data/tweets.js': `window.YTD.tweets.part0 = ${JSON.stringify([{ tweet: post }])}` },
  linear: {
    'issues.json': [
      { identifier: 'A-1', title: 'T', description: 'Hi', createdAt: '2024-05-01T09:30:00Z' },
    ],
  },
  youtube: {
    'v.info.json': {
      id: 'v',
      title: 'T',
      webpage_url: 'https://y.example',
      comments: [{ id: 'c', text: 'Hi' }],
    },
  },
  jira: {
    'jira.csv': 'Summary,Issue key,Issue id,Comment,Comment\nT,A-1,1,Hi,\n',
    'search.json': {
      issues: [
        { key: 'A-2', fields: { summary: 'T', comment: { comments: [{ id: '1', body: 'Hi' }] } } },
      ],
    },
  },
  googledoc: {
    'comments.json': {
      comments: [
        {
          id: 'c',
          author: { displayName: 'Ada' },
          createdTime: '2024-05-01T09:30:00Z',
          content: 'Hi',
        },
      ],
    },
  },
  facebook: {
    'messages/inbox/ada_7/message_1.json': {
      participants: [{ name: 'Ada' }],
      messages: [{ sender_name: 'Ada', timestamp_ms: 1714556000000, content: 'Hi' }],
      title: 'Ada',
      thread_path: 'inbox/ada_7',
    },
  },
  mattermost: {
    'import.jsonl': [
      { type: 'version', version: 1 },
      {
        type: 'post',
        post: { team: 't', channel: 'c', user: 'ada', message: 'Hi', create_at: 1714556000000 },
      },
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
  },
  whatsapp: { '_chat.txt': '[31/5/2024, 09:30] Ada: Hi\n' },
  imessage: sqlite
    ? { 'Messages/chat.db': chatDatabase(sqlite, [{ guid: 'G1', text: 'Hi' }]) }
    : 'not applicable: this Node has no SQLite',
  github: {
    'issues.json': [
      { number: 1, title: 'T', body: 'Hi', html_url: 'https://github.com/a/b/issues/1' },
    ],
  },
  'app-store': { 'reviews.json': { data: [review] } },
  reddit: { RC: JSON.stringify({ id: 'k1', link_id: 't3_1', subreddit: 'bread', body: 'Hi' }) },
  mail: { '1.eml': 'From: ada@example.org\nSubject: Hi\nMessage-ID: <1@example.org>\n\nHello\n' },
  play: { 'reviews.csv': play },
  ndjson: { 'a.ndjson': JSON.stringify(thread) },
  json: { 'a.json': [thread] },
  csv: { 'a.csv': 'service,externalId,text\ncustom,1,a\n' },
  spreadsheet: {
    'a.ods': makeZip({
      mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
      'content.xml': content,
    }),
  },
  rejected: {
    'a.rejected.ndjson': JSON.stringify({ reason: 'r', path: 'a.json', record: thread }),
  },
}

export const examples = new Map<string, Files>(
  Object.entries(EXAMPLES).flatMap(([name, example]) =>
    typeof example === 'string' ? [] : [[name, example]],
  ),
)
export const testable = formats.filter(({ name }) => examples.has(name))

export function filesOf({ name }: Format) {
  const files = examples.get(name) ?? assert.fail(`EXAMPLES has no export of ${name}`)
  return Object.entries(files).map(([path, value]) => inputFile(path, value))
}
