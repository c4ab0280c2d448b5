import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { redditFormat } from './reddit.ts'

const submission = {
  id: '1abc',
  title: 'Which keyboard?',
  selftext: 'I want a split one.',
  author: 'ada',
  created_utc: 1714555800,
  subreddit: 'keyboards',
  subreddit_id: 't5_2kb',
  permalink: '/r/keyboards/comments/1abc/which_keyboard/',
  url: 'https://www.reddit.com/r/keyboards/comments/1abc/which_keyboard/',
  is_self: true,
  score: 12,
  ups: 14,
  downs: 2,
}
const comment = {
  id: 'k1',
  link_id: 't3_1abc',
  parent_id: 't3_1abc',
  body: 'A loud one.',
  author: 'bob',
  created_utc: '1714555860',
  subreddit: 'keyboards',
  subreddit_id: 't5_2kb',
  permalink: '/r/keyboards/comments/1abc/which_keyboard/k1/',
  score: -3,
}
const ndjson = (...records: unknown[]) =>
  inputFile('RC.ndjson', records.map((each) => JSON.stringify(each)).join('\n'))
const read = (...records: unknown[]) => readAll(redditFormat, [ndjson(...records)])
const reasons = ({ notes }: { notes: { kind: string; reason: string }[] }) =>
  notes.map(({ kind, reason }) => `${kind}: ${reason}`)

describe('Reddit', () => {
  it('reads a submission as a source with its text as the first quote, and its score only', async () => {
    const { pieces } = await read(submission)
    const createdAt = '2024-05-01T09:30:00.000Z'
    assert.deepEqual(pieces, [
      {
        kind: 'piece',
        service: 'reddit',
        externalId: 't3_1abc',
        order: createdAt,
        fields: {
          title: 'Which keyboard?',
          placeholderTitle: 'which keyboard',
          channelName: 'r/keyboards',
          channelId: 't5_2kb',
          url: 'https://www.reddit.com/r/keyboards/comments/1abc/which_keyboard/',
          createdAt,
          score: 12,
        },
        quotes: [
          {
            text: 'I want a split one.',
            externalId: 't3_1abc',
            speaker: 'ada',
            createdAt,
            score: 12,
          },
        ],
        place: { path: 'RC.ndjson', line: 1 },
      },
    ])
  })

  it('takes the link of a submission without text as its text', async () => {
    const link = 'https://example.org/split'
    const { pieces } = await read(
      { ...submission, selftext: '', url: link },
      { ...submission, selftext: '' },
    )
    assert.deepEqual(
      pieces.map(({ quotes }) => quotes.map(({ text }) => text)),
      [[link], []],
    )
  })

  it('stores the characters that Reddit writes as entities, once', async () => {
    const { pieces } = await read(
      { ...submission, title: 'Q&amp;A', selftext: '&gt; a &lt; b &amp;amp; c &quot;&amp;#x200B;' },
      { ...submission, selftext: '', url: 'https://example.org/?a=1&amp;b=2' },
      { ...comment, body: '&gt; quoted' },
    )
    assert.deepEqual(
      pieces.map(({ fields, quotes }) => [fields.title, quotes[0]?.text]),
      [
        ['Q&A', '> a < b &amp; c &quot;'],
        ['Which keyboard?', 'https://example.org/?a=1&b=2'],
        [undefined, '> quoted'],
      ],
    )
  })

  it('reads a comment as a quote of its link_id, at top level if its parent is the submission', async () => {
    const { pieces } = await read(comment, { ...comment, id: 'k2', parent_id: 't1_k1' })
    const quote = {
      text: 'A loud one.',
      speaker: 'bob',
      createdAt: '2024-05-01T09:31:00.000Z',
      score: -3,
    }
    assert.deepEqual(
      pieces.map(({ externalId, quotes }) => [externalId, quotes]),
      [
        ['t3_1abc', [{ ...quote, externalId: 't1_k1' }]],
        ['t3_1abc', [{ ...quote, externalId: 't1_k2', replyingTo: 't1_k1' }]],
      ],
    )
  })

  it('orders a submission before its comments, in whichever order they come', async () => {
    const { pieces } = await read(comment, submission)
    assert.ok((pieces[0]?.order ?? '') > (pieces[1]?.order ?? ''))
  })

  it('offers the title in the permalink for comments without their submission', async () => {
    const { permalink: _, ...old } = comment
    const { pieces } = await read(comment, old)
    assert.deepEqual(
      pieces.map(({ fields }) => [fields.title, fields.placeholderTitle]),
      [
        [undefined, 'which keyboard'],
        [undefined, 't3_1abc'],
      ],
    )
  })

  it('skips comments that were deleted or removed, whoever removed them, and counts them', async () => {
    const policy = 'on account of violating the [content policy](/help/contentpolicy).'
    const marks = [
      '[deleted]',
      '[removed]',
      '[ Removed by Reddit ]',
      `[ Removed by Reddit ${policy} ]`,
    ]
    const texts = ['I was [deleted]', '[deleted] [removed]', '[deleted by accident]']
    const contents = await read(...[...marks, '', ...texts].map((body) => ({ ...comment, body })))
    assert.deepEqual(
      contents.pieces.map(({ quotes }) => quotes[0]?.text),
      texts,
    )
    const gone = 'skipped: comments that were deleted or removed'
    assert.deepEqual(reasons(contents), [
      ...marks.map(() => gone),
      'skipped: comments without text',
    ])
  })

  it('knows marks of takedowns, and marks of any language if the author or the record is gone', async () => {
    const marks = [
      '[ Removed by reddit in response to a copyright notice. ]',
      '[removed by mods]',
      '[deleted]\n',
      '[unavailable]',
    ]
    const foreign = { body: '[gelöscht]', author: '[gelöscht]' }
    const contents = await read(
      ...marks.map((body) => ({ ...comment, body })),
      { ...comment, ...foreign },
      { ...comment, body: '[entfernt]', removed_by_category: 'moderator' },
      { ...comment, body: '[gelöscht]' },
      { ...submission, title: '[ 삭제됨 ]', selftext: '[ 삭제됨 ]', author: '[ 삭제됨 ]' },
      {
        ...submission,
        title: '[Meta]',
        selftext: '[ Removed by Reddit ]',
        url: 'https://example.org',
      },
    )
    assert.deepEqual(
      contents.pieces.map(({ fields, quotes }) => [fields.title, quotes.map(({ text }) => text)]),
      [
        [undefined, ['[gelöscht]']],
        [undefined, []],
        ['[Meta]', []],
      ],
    )
    assert.equal(reasons(contents).length, 8)
  })

  it('reads ids of parents as numbers, and without their kind', async () => {
    const number = Number.parseInt('j71teh3', 36)
    const submissionNumber = Number.parseInt('10a4xyz', 36)
    const parents = [number, String(number), 'j71teh3', 't1_j71teh3', null, '', '1abc', 't3_1abc']
    const { pieces } = await read(...parents.map((parent_id) => ({ ...comment, parent_id })), {
      ...comment,
      link_id: submissionNumber,
      parent_id: submissionNumber,
    })
    const [numbered] = (await read({ ...comment, id: number }, { ...comment, id: 't1_j71teh3' }))
      .pieces
    assert.equal(numbered?.quotes[0]?.externalId, 't1_j71teh3')
    assert.deepEqual(
      pieces.map(({ externalId, quotes }) => [externalId, quotes[0]?.replyingTo]),
      [
        ...Array.from({ length: 4 }, () => ['t3_1abc', 't1_j71teh3']),
        ...Array.from({ length: 4 }, () => ['t3_1abc', undefined]),
        ['t3_10a4xyz', undefined],
      ],
    )
  })

  it('reads the text of a crosspost and the answers of a poll, and counts links and images beside a text', async () => {
    const shared = [{ selftext: 'Their text' }, { selftext: '[removed]' }]
    const contents = await read(
      { ...submission, selftext: '', crosspost_parent_list: shared, url: 'https://example.org' },
      {
        ...submission,
        selftext: '',
        gallery_data: { items: [{ media_id: 'a', caption: 'Split &amp; flat' }, {}] },
      },
      {
        ...submission,
        poll_data: { options: [{ text: 'Loud &amp; long' }] },
        media_metadata: { a: {}, b: {} },
      },
    )
    assert.deepEqual(
      contents.pieces.map(({ quotes }) => quotes[0]?.text),
      ['Their text', 'Split & flat', 'I want a split one.\n• Loud & long'],
    )
    assert.deepEqual(reasons(contents), [
      'skipped: links beside a text',
      'skipped: images of submissions',
      'skipped: images of submissions',
    ])
  })

  it('puts the copy last that was edited, then the one that was retrieved, last', async () => {
    const copies = [
      { ...comment, body: 'edited', edited: 1714600000 },
      { ...comment, body: 'later', edited: false, retrieved_on: 1714590000 },
      { ...comment, body: 'first', edited: false },
    ]
    assert.deepEqual(
      (await read(...copies)).quotes('t3_1abc').map(({ text }) => text),
      ['first', 'later', 'edited'],
    )
  })

  it('keeps what is left of a submission that was deleted or removed, and none of its marks', async () => {
    const contents = await read(
      { ...submission, selftext: '[removed]', author: '[deleted]' },
      { ...submission, title: '[deleted by user]', selftext: '[deleted]' },
    )
    assert.deepEqual(
      contents.pieces.map(({ fields, quotes }) => [fields.title, quotes]),
      [
        ['Which keyboard?', []],
        [undefined, []],
      ],
    )
    assert.equal(reasons(contents).length, 2)
  })

  it('sends no name for an author who is gone', async () => {
    const { pieces } = await read({ ...comment, author: '[deleted]' })
    assert.deepEqual(Object.keys(pieces[0]?.quotes[0] ?? {}), [
      'text',
      'externalId',
      'createdAt',
      'score',
    ])
  })

  it('rejects records that are neither', async () => {
    const { rejected, notes } = await read(
      { id: 't5_2kb', display_name: 'keyboards' },
      [],
      { ...comment, id: null },
      { id: 'm', dest: 'ada', subject: 'Hi', body: 'Hi', subreddit: null },
    )
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['private messages'],
    )
    assert.deepEqual(
      rejected.map(({ reason, place }) => [reason, place.line]),
      [1, 2, 3].map((line) => ['The record is neither a submission nor a comment.', line]),
    )
  })

  it('is recognised by its members', async () => {
    for (const record of [submission, comment])
      assert.ok(await recognises(redditFormat, ndjson(record)))
    assert.ok(!(await recognises(redditFormat, ndjson({ id: 1, body: 'link_id' }))))
  })
})
