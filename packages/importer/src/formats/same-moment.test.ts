// What holds for each format of the table: messages that differ only in their text are all stored,
// and none twice.
import assert from 'node:assert/strict'
import { contentOf } from '@sluice/contract'
import { makeZip } from '@sluice/test-support'
import { describe, it } from 'vitest'
import type { Format, InputFile } from './format.ts'
import { type FormatName, formats } from './formats.ts'
import { chatDatabase, inputFile, readAll } from './read-all.test-support.ts'

/** Node before 22.13 has no SQLite. */
const sqlite = await import('node:sqlite').catch(() => undefined)

const SECOND = 1_714_556_000
const MOMENT = '2024-05-01T09:33:20Z'
const mailOf = (id: string, text: string) =>
  `From: ada@example.org\nDate: Wed, 1 May 2024 09:33:20 +0000\nSubject: Hi\n${id}\n${text}\n`

type FilesOf = (
  messages: readonly { id: number; text: string }[],
) => Readonly<Record<string, unknown>>
const linesOf = (records: readonly object[]) => records.map((one) => JSON.stringify(one)).join('\n')
const cell = (text: string) => `<table-cell value-type="string"><p>${text}</p></table-cell>`
const rowOf = (...texts: string[]) => `<table-row>${texts.map(cell).join('')}</table-row>`
const reviews = 'Package Name,Star Rating,Review Text,Review Submit Millis Since Epoch,Review Link'
const csvRow = (text: string) => ['custom', '1', 'T', 'Ada', MOMENT, text]
const COLUMNS = ['service', 'source.externalId', 'title', 'speaker', 'createdAt', 'text']
const issue = {
  number: 1,
  title: 'T',
  html_url: 'https://github.com/a/b/issues/1',
  user: { login: 'ada' },
}
const threadOf: FilesOf = (all) => ({
  'a.json': [
    {
      service: 'custom',
      externalId: '1',
      title: 'T',
      quotes: all.map(({ text }) => ({ text, speaker: 'Ada', createdAt: MOMENT })),
    },
  ],
})

/** Exports whose messages have one moment and one author, with an id only if the format has ids. */
const EXPORTS: Readonly<
  Record<Exclude<FormatName, 'imessage'>, FilesOf> & Record<string, FilesOf>
> = {
  slack: (all) => ({
    'users.json': [],
    'channels.json': [{ id: 'C1', name: 'general' }],
    'general/2024-05-01.json': all.map(({ id, text }) => ({
      user: 'U1',
      text,
      ts: `${SECOND}.00010${id}`,
    })),
  }),
  discord: (all) => ({
    'c.json': {
      guild: { id: '7' },
      channel: { id: '8', name: 'general' },
      messages: all.map(({ id, text }) => ({
        id: `${id}`,
        timestamp: MOMENT,
        content: text,
        author: { name: 'ada' },
      })),
    },
  }),
  telegram: (all) => ({
    'result.json': {
      name: 'Ada',
      type: 'personal_chat',
      id: 9,
      messages: all.map(({ id, text }) => ({
        id,
        type: 'message',
        date_unixtime: `${SECOND}`,
        from: 'Ada',
        text,
      })),
    },
  }),
  zendesk: (all) => ({
    'tickets.json': {
      tickets: [
        {
          id: 1,
          subject: 'T',
          requester_id: 1,
          comments: all.map(({ text }) => ({ author_id: 1, body: text, created_at: MOMENT })),
        },
      ],
    },
  }),
  x: (all) => ({
    'data/tweets.js': `window.YTD.tweets.part0 = ${JSON.stringify(
      all.map(({ id, text }) => ({
        tweet: { id_str: `${id}`, full_text: text, created_at: 'Wed May 01 09:33:20 +0000 2024' },
      })),
    )}`,
  }),
  linear: (all) => ({
    'issues.json': [
      {
        identifier: 'A-1',
        title: 'T',
        createdAt: MOMENT,
        comments: {
          nodes: all.map(({ text }) => ({ body: text, createdAt: MOMENT, user: { name: 'Ada' } })),
        },
      },
    ],
  }),
  youtube: (all) => ({
    'v.info.json': {
      id: 'v',
      title: 'T',
      webpage_url: 'https://y.example',
      comments: all.map(({ id, text }) => ({
        id: `c${id}`,
        text,
        author: 'ada',
        timestamp: SECOND,
      })),
    },
  }),
  jira: (all) => ({
    'jira.csv': `Summary,Issue key,Issue id${all.map(() => ',Comment').join('')}\nT,A-1,1,${all
      .map(({ text }) => `01/May/24 9:33 AM;ada;${text}`)
      .join()}\n`,
  }),
  'jira (API)': (all) => ({
    'search.json': {
      issues: [
        {
          key: 'A-1',
          fields: {
            summary: 'T',
            comment: {
              comments: all.map(({ id, text }) => ({ id: `${id}`, body: text, created: MOMENT })),
            },
          },
        },
      ],
    },
  }),
  'discord (package)': (all) => ({
    'messages/c8/messages.json': all.map(({ id, text }) => ({
      ID: id,
      Timestamp: '2024-05-01 09:33:20',
      Contents: text,
      Attachments: '',
    })),
  }),
  googledoc: (all) => ({
    'comments.json': {
      comments: all.map(({ id, text }) => ({
        id: `${id}`,
        author: { displayName: 'Ada' },
        createdTime: MOMENT,
        content: text,
      })),
    },
  }),
  facebook: (all) => ({
    'messages/inbox/ada_7/message_1.json': {
      participants: [{ name: 'Ada' }],
      messages: all.map(({ text }) => ({
        sender_name: 'Ada',
        timestamp_ms: SECOND * 1_000,
        content: text,
      })),
      title: 'Ada',
      thread_path: 'inbox/ada_7',
    },
  }),
  'facebook (posts)': (all) => ({
    'posts/your_posts_1.json': all.map(({ text }) => ({
      timestamp: SECOND,
      data: [{ post: text }],
    })),
  }),
  'facebook (comments)': (all) => ({
    'comments.json': {
      comments_v2: all.map(({ text }) => ({
        timestamp: SECOND,
        data: [{ comment: { timestamp: SECOND, comment: text, author: 'Ada' } }],
      })),
    },
  }),
  mattermost: (all) => ({
    'import.jsonl': linesOf(
      all.map(({ text }) => ({
        type: 'post',
        post: { team: 't', channel: 'c', user: 'ada', message: text, create_at: SECOND * 1_000 },
      })),
    ),
  }),
  'mattermost (replies)': (all) => {
    const own = { user: 'ada', create_at: SECOND * 1_000 }
    const [root, ...replies] = all.map(({ text }) => ({ ...own, message: text }))
    return {
      'import.jsonl': linesOf([
        { type: 'post', post: { team: 't', channel: 'c', ...root, replies } },
      ]),
    }
  },
  whatsapp: (all) => ({
    '_chat.txt': all.map(({ text }) => `[31/5/2024, 09:30] Ada: ${text}\n`).join(''),
  }),
  ...(sqlite && {
    imessage: (all) => ({
      'Messages/chat.db': chatDatabase(
        sqlite,
        all.map(({ id, text }) => ({ guid: `G${id}`, text })),
      ),
    }),
  }),
  github: (all) => ({
    'issues.json': [
      {
        ...issue,
        comments: all.map(({ text }) => ({
          body: text,
          user: { login: 'ada' },
          created_at: MOMENT,
        })),
      },
    ],
  }),
  'app-store': (all) => ({
    'reviews.json': {
      data: all.map(({ id, text }) => ({
        type: 'customerReviews',
        id: `${id}`,
        attributes: { rating: 5, body: text, reviewerNickname: 'Ada', createdDate: MOMENT },
      })),
    },
  }),
  reddit: (all) => ({
    RC: linesOf(
      all.map(({ id, text }) => ({
        id: `k${id}`,
        link_id: 't3_1',
        subreddit: 'bread',
        author: 'ada',
        created_utc: SECOND,
        body: text,
      })),
    ),
  }),
  mail: (all) =>
    Object.fromEntries(
      all.map(({ id, text }) => [`${id}.eml`, mailOf(`Message-ID: <${id}@a>\n`, text)]),
    ),
  'mail (no ids)': (all) =>
    Object.fromEntries(all.map(({ id, text }) => [`${id}.eml`, mailOf('', text)])),
  play: (all) => ({
    'reviews.csv': [reviews, ...all.map(({ text }) => `org.example,5,${text},${SECOND}000,`)].join(
      '\n',
    ),
  }),
  ndjson: (all) => ({
    'a.ndjson': linesOf(Object.values(threadOf(all)).flatMap((one) => one as object[])),
  }),
  json: threadOf,
  csv: (all) => ({
    'a.csv': [COLUMNS, ...all.map(({ text }) => csvRow(text))].map((row) => row.join()).join('\n'),
  }),
  spreadsheet: (all) => {
    const rows = [COLUMNS, ...all.map(({ text }) => csvRow(text))]
      .map((row) => rowOf(...row))
      .join('')
    const content = `<spreadsheet><table>${rows}</table></spreadsheet>`
    return {
      'a.ods': makeZip({
        mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
        'content.xml': content,
      }),
    }
  },
  rejected: (all) => ({
    'a.rejected.ndjson': JSON.stringify({
      reason: 'r',
      path: 'a.json',
      record: Object.values(threadOf(all)).flatMap((one) => one as object[])[0],
    }),
  }),
}

function formatOf(name: string): Format {
  const [own = ''] = name.split(' ')
  return formats.find((format) => format.name === own) ?? assert.fail(own)
}

const filesOf = (name: string, texts: readonly string[]): InputFile[] => {
  const messages = texts.map((text) => ({ id: TEXTS.indexOf(text) + 1, text }))
  return Object.entries(EXPORTS[name]?.(messages) ?? {}).map(([path, content]) =>
    inputFile(path, content),
  )
}
const TEXTS = ['One', 'Two', 'Three']

/**
 * Imports as the store does: a quote has its id, or its content and its number among equal quotes
 * of the import.
 */
async function importInto(
  stored: Map<string, string>,
  name: string,
  files: readonly InputFile[],
): Promise<void> {
  const { pieces, rejected } = await readAll(formatOf(name), files, { timezone: 'UTC' })
  assert.deepEqual(rejected, [])
  const equal = new Map<string, number>()
  for (const { externalId, quotes } of pieces)
    for (const quote of quotes) {
      const content = contentOf({ ...quote, createdAt: String(quote.createdAt) })
      const number = equal.get(`${externalId}\0${content}`) ?? 0
      if (!quote.externalId) equal.set(`${externalId}\0${content}`, number + 1)
      stored.set(`${externalId}\0${quote.externalId ?? `${content}\0${number}`}`, quote.text)
    }
}

describe('messages that differ only in their text', () => {
  for (const name of Object.keys(EXPORTS))
    it(`of ${name} are all stored, once, also if exports overlap`, async () => {
      const stored = new Map<string, string>()
      const texts = () => [...stored.values()].map((text) => text.trim()).toSorted()
      await importInto(stored, name, filesOf(name, ['One', 'Two']))
      assert.deepEqual(texts(), ['One', 'Two'])
      await importInto(stored, name, filesOf(name, ['One', 'Two']))
      assert.deepEqual(texts(), ['One', 'Two'])
      await importInto(stored, name, filesOf(name, TEXTS))
      assert.deepEqual(texts(), ['One', 'Three', 'Two'])
    })
})
