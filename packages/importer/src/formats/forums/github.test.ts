import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { filesByFormat, inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { githubFormat } from './github.ts'

const api = 'https://api.github.com/repos/example/sluice/issues'
const web = 'https://github.com/example/sluice/issues/7'
const issue = {
  url: `${api}/7`,
  html_url: web,
  number: 7,
  title: 'It leaks',
  body: 'At the seam.',
  user: { login: 'ada' },
  created_at: '2024-05-01T09:30:00Z',
  comments: 1,
  reactions: { '+1': 5 },
}
const comment = {
  url: `${api}/comments/99`,
  html_url: `${web}#issuecomment-99`,
  issue_url: `${api}/7`,
  id: 99,
  body: 'Fixed.',
  user: { login: 'dependabot[bot]', type: 'Bot' },
  created_at: '2024-05-01T10:30:00Z',
}
const gh = {
  url: web,
  number: 7,
  title: 'It leaks',
  body: 'At the seam.',
  author: { login: 'ada' },
  createdAt: '2024-05-01T09:30:00Z',
  comments: [
    {
      id: 'IC_kwDO1',
      url: `${web}#issuecomment-99`,
      body: 'Fixed.',
      author: { login: 'dependabot[bot]' },
      createdAt: '2024-05-01T10:30:00Z',
    },
  ],
}
const file = (content: unknown, path = 'issues.json') => inputFile(path, JSON.stringify(content))
const essence = ({ pieces }: Awaited<ReturnType<typeof readAll>>) =>
  pieces.map(({ place: _, fields: { placeholderTitle: _title, ...fields }, ...piece }) => ({
    ...piece,
    fields,
  }))

const expected = [
  {
    kind: 'piece',
    service: 'custom',
    externalId: 'example/sluice#7',
    order: '2024-05-01T09:30:00.000Z',
    fields: { title: 'It leaks', url: web, createdAt: '2024-05-01T09:30:00.000Z' },
    quotes: [
      {
        text: 'At the seam.',
        externalId: 'example/sluice#7',
        speaker: 'ada',
        createdAt: '2024-05-01T09:30:00.000Z',
      },
    ],
  },
  {
    kind: 'piece',
    service: 'custom',
    externalId: 'example/sluice#7',
    order: '2024-05-01T10:30:00.000Z',
    fields: {},
    quotes: [
      {
        text: 'Fixed.',
        externalId: '99',
        speaker: 'dependabot[bot]',
        createdAt: '2024-05-01T10:30:00.000Z',
      },
    ],
  },
]

describe('a GitHub issue', () => {
  it('is joined with comments that lie in a list or file of their own', async () => {
    const contents = await readAll(githubFormat, [file([issue]), file([comment])])
    assert.deepEqual([essence(contents), contents.notes], [expected, []])
    assert.deepEqual(
      essence(await readAll(githubFormat, [file({ issues: [issue], issue_comments: [comment] })])),
      expected,
    )
  })

  it('has comments of its own, as gh, GraphQL and backups write them, under the same ids', async () => {
    const { comments, ...rest } = gh
    const backup = { ...issue, comment_data: [comment] }
    const nodes = [{ __typename: 'PullRequestReview', body: 'no' }, {}, ...comments]
    const ofGraphql = [{ comments: { nodes: comments } }, { timelineItems: { nodes } }]
    for (const content of [[gh], ...ofGraphql.map((one) => ({ ...rest, ...one })), backup])
      assert.deepEqual(essence(await readAll(githubFormat, [file(content)])), expected)
  })

  it('is read from the archives that working groups keep: authors as names, comments without ids', async () => {
    const { id: _, url: _url, ...bare } = { ...gh.comments[0], author: 'bob' }
    const archive = {
      magic: 'x',
      issues: [{ ...gh, author: 'ada', comments: [bare] }],
      pulls: [{ ...gh, reviews: [{}], reviewThreads: { nodes: [{}] } }],
    }
    const contents = await readAll(githubFormat, [file(archive)])
    const { externalId: _id, ...quote } = expected[1]?.quotes[0] ?? {}
    assert.deepEqual(contents.pieces[0]?.quotes, expected[0]?.quotes)
    assert.deepEqual(contents.pieces[1]?.quotes, [{ ...quote, speaker: 'bob' }])
    assert.deepEqual(
      contents.notes.map(({ reason }) => reason),
      Array(2).fill('reviews of pull requests, and comments on their lines'),
    )
  })

  it('is read from pages in a list, of each kind that gh writes', async () => {
    const second = { ...issue, number: 8, url: `${api}/8`, html_url: web.replace('7', '8') }
    const graphql = (nodes: unknown[]) => ({
      data: { repository: { issues: { nodes, pageInfo: {} } } },
    })
    for (const pages of [
      [[issue], [second]],
      [{ total_count: 2, items: [issue] }, { items: [second] }],
      [graphql([gh]), graphql([{ ...gh, url: web.replace('7', '8'), comments: [] }])],
    ]) {
      assert.ok(await recognises(githubFormat, file(pages)))
      const { pieces, rejected } = await readAll(githubFormat, [file(pages)])
      assert.deepEqual(rejected, [])
      const ids = new Set(pieces.map(({ externalId }) => externalId))
      assert.deepEqual([...ids], ['example/sluice#7', 'example/sluice#8'])
    }
    assert.ok(await recognises(githubFormat, file(graphql([gh]))))
    const roots = inputFile('issues.json', `${JSON.stringify([issue])}${JSON.stringify([second])}`)
    assert.equal((await readAll(githubFormat, [roots])).pieces.length, 2)
  })

  it('is read beside what is no comment of it, which is counted', async () => {
    const pull_request_url = `${api.replace('issues', 'pulls')}/7`
    const { issue_url: _, ...onLine } = {
      ...comment,
      html_url: `${web}#discussion_r98`,
      id: 98,
      pull_request_url,
    }
    const review = {
      id: 5,
      user: { login: 'ada' },
      body: 'Looks good',
      state: 'APPROVED',
      pull_request_url,
    }
    const onCommit = {
      html_url: 'https://github.com/example/sluice/commit/a#commitcomment-1',
      commit_id: 'a',
      body: 'x',
    }
    const happened = { event: 'closed', issue: { url: `${api}/7` } }
    const contents = await readAll(githubFormat, [
      file([onLine, review, onCommit, happened, issue]),
    ])
    assert.equal(contents.pieces.length, 1)
    assert.deepEqual(contents.rejected, [])
    assert.deepEqual(contents.noted, {
      'warning: issues that only count their comments (import what repos/OWNER/REPO/issues/comments answers, too)': 1,
      'skipped: reviews of pull requests, and comments on their lines': 2,
      'skipped: comments on commits': 1,
      'skipped: events, such as of who closed an issue': 1,
    })
    assert.ok(await recognises(githubFormat, file([onLine])))
  })

  it('is read from a migration archive, among its other files', async () => {
    const user = 'https://github.com/ada'
    const { created_at } = issue
    const of = { user, created_at, body: 'Hi' }
    const pull = 'https://github.com/example/sluice/pull/8'
    const files = [
      file([{ type: 'attachment', asset_url: 'x' }], 'a/attachments_000001.json'),
      file(
        [{ type: 'issue_comment', url: `${web}#issuecomment-99`, issue: web, ...of }],
        'a/issue_comments_000001.json',
      ),
      file([{ type: 'issue_event', issue: web, event: 'closed' }], 'a/issue_events_000001.json'),
      file(
        [{ type: 'issue', url: web, repository: 'x', title: 'It leaks', ...of }],
        'a/issues_000001.json',
      ),
      file(
        [{ type: 'pull_request_review_comment', pull_request: pull, ...of }],
        'a/reviews_000001.json',
      ),
      file(
        [{ type: 'issue_comment', url: `${pull}#issuecomment-5`, pull_request: pull, ...of }],
        'a/more_000002.json',
      ),
      file({}, 'a/schema.json'),
      inputFile('a/repositories/example/sluice.git/HEAD', 'ref: refs/heads/main'),
      inputFile('a/attachments/1/rows.csv', 'a,b'),
    ]
    assert.deepEqual(await filesByFormat(files), { github: files.map(({ path }) => path) })
    const contents = await readAll(githubFormat, files)
    assert.deepEqual(contents.rejected, [])
    assert.deepEqual(
      contents.pieces.map(({ externalId, quotes: [quote] }) => [
        externalId,
        quote?.externalId,
        quote?.speaker,
      ]),
      [
        ['example/sluice#7', '99', 'ada'],
        ['example/sluice#7', 'example/sluice#7', 'ada'],
        ['example/sluice#8', '5', 'ada'],
      ],
    )
    assert.deepEqual(contents.noted, {
      'skipped: records other than issues and comments': 1,
      'skipped: events, such as of who closed an issue': 1,
      'skipped: reviews of pull requests, and comments on their lines': 1,
      'skipped: files without messages: repositories, and lists without issues': 3,
    })
  })

  it('has the comments that Gitea and the timeline of an issue list', async () => {
    const gitea = 'https://gitea.example/example/sluice'
    const of = (html_url: string, rest: object) => ({ html_url, user: null, ...rest })
    const records = [
      of(`${gitea}/issues/7#issuecomment-1`, {
        issue_url: `${gitea}/issues/7`,
        pull_request_url: '',
        body: 'a',
      }),
      of(`${gitea}/pulls/8#issuecomment-2`, {
        issue_url: '',
        pull_request_url: `${gitea}/pulls/8`,
        body: 'b',
      }),
      { ...comment, event: 'commented' },
      { event: 'closed', id: 1 },
    ]
    const { pieces, noted } = await readAll(githubFormat, [file(records)])
    assert.deepEqual(
      pieces.map(({ externalId, quotes }) => [externalId, quotes[0]?.externalId]),
      [
        ['example/sluice#7', '1'],
        ['example/sluice#8', '2'],
        ['example/sluice#7', '99'],
      ],
    )
    assert.deepEqual(noted, { 'skipped: events, such as of who closed an issue': 1 })
  })

  it('is read alone from GraphQL, and says that the answer has only some of its comments', async () => {
    const alone = { ...gh, comments: { nodes: gh.comments, pageInfo: { hasNextPage: true } } }
    const answer = file({ data: { repository: { issue: alone } } })
    assert.ok(await recognises(githubFormat, answer))
    const read = await readAll(githubFormat, [answer])
    assert.deepEqual(essence(read), expected)
    assert.deepEqual(read.noted, { 'skipped: issues whose comments are not all in the file': 1 })
  })

  it('has comments in a list beside a list of issues', async () => {
    assert.deepEqual(
      essence(await readAll(githubFormat, [file({ issues: [issue], comments: [comment] })])),
      expected,
    )
  })

  it('and its comments: of two copies the one that was edited last comes last', async () => {
    const later = { ...comment, body: 'Mended.', updated_at: '2024-06-01T10:30:00Z' }
    const copies = [later, { ...comment, updated_at: comment.created_at }]
    assert.deepEqual(
      (await readAll(githubFormat, [file(copies)]))
        .quotes('example/sluice#7')
        .map(({ text }) => text),
      ['Fixed.', 'Mended.'],
    )
  })

  it('may be a pull request, on any host', async () => {
    const { pieces } = await readAll(githubFormat, [
      file([{ ...issue, html_url: 'https://git.example.org/a/b/pull/12', pull_request: {} }]),
    ])
    assert.equal(pieces[0]?.externalId, 'a/b#12')
  })

  it('without text has no quote, and without author no speaker', async () => {
    const { pieces } = await readAll(githubFormat, [
      file([
        { ...issue, body: null },
        { ...issue, user: null },
      ]),
    ])
    assert.deepEqual(pieces[0]?.quotes, [])
    assert.equal(pieces[1]?.quotes[0]?.speaker, undefined)
  })

  it('gives a placeholder for a title where only comments are known', async () => {
    const { pieces } = await readAll(githubFormat, [file([comment])])
    assert.deepEqual(pieces[0]?.fields, { placeholderTitle: 'example/sluice#7' })
  })

  it('counts comments without text, and rejects what is neither', async () => {
    const broken = [
      { ...comment, body: ' ' },
      { ...issue, html_url: 'https://example.org', url: '' },
      { ...comment, issue_url: 'x' },
    ]
    const { rejected, notes } = await readAll(githubFormat, [file(broken)])
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['comments without text'],
    )
    assert.deepEqual(
      rejected.map(({ place }) => place.pointer),
      ['/1', '/2'],
    )
  })

  it('is recognised by its members', async () => {
    for (const content of [[issue], [gh], gh, { issues: [issue] }, [comment]])
      assert.ok(await recognises(githubFormat, file(content)), JSON.stringify(content).slice(0, 40))
    assert.ok(!(await recognises(githubFormat, file([{ id: 1, title: 'a' }]))))
  })
})
