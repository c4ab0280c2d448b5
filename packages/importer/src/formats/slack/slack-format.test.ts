// Tests of the Slack format, on an export of a small bakery.
import { describe, expect, test } from 'vitest'
import type { InputFile } from '../format.ts'
import { filesByFormat, inputFile, readAll } from '../read-all.test-support.ts'
import { slackFormat } from './slack-format.ts'

const users = [
  {
    id: 'U1',
    name: 'ada',
    real_name: 'Ada Baker',
    profile: { display_name: 'Ada', real_name: 'Ada Baker' },
  },
  { id: 'U2', name: 'bo', deleted: true, profile: { display_name: '', real_name: 'Bo Miller' } },
]
const lists = [
  inputFile('users.json', users),
  inputFile('channels.json', [{ id: 'C1', name: 'ovens', members: ['U1'] }]),
  inputFile('groups.json', [{ id: 'G1', name: 'recipes' }]),
  inputFile('mpims.json', [{ id: 'G2', name: 'mpdm-ada--bo-1' }]),
  inputFile('dms.json', [{ id: 'D1', members: ['U1', 'U2'] }]),
]
const root = {
  type: 'message',
  user: 'U1',
  text: 'The oven is cold\nsince six',
  ts: '1714550400.000100',
  thread_ts: '1714550400.000100',
  reply_count: 2,
}
const reply = {
  type: 'message',
  user: 'U2',
  text: 'Fixed',
  ts: '1714640000.000200',
  thread_ts: root.ts,
}
const alone = { type: 'message', user: 'U1', text: 'Good morning', ts: '1714550500.123456' }

test('recognises an export by its lists and day files', async () => {
  const day = inputFile('ovens/2024-05-01.json', [root])
  expect(Object.keys(await filesByFormat([...lists, day]))).toEqual(['slack'])
  await expect(filesByFormat([day])).rejects.toThrow('not recognised')
  await expect(filesByFormat([inputFile('users.json', users)])).rejects.toThrow('not recognised')
})

test('an export of lists alone is recognised, and the error says what it lacks', async () => {
  expect(Object.keys(await filesByFormat(lists))).toEqual(['slack'])
  const others = [inputFile('ref-channels.json', []), ...lists]
  expect((await filesByFormat(others)).unread).toEqual(['x/ref-channels.json'])
  await expect(find({})).rejects.toThrow(/has no messages: the folders of its channels/)
})

describe('threads', () => {
  test('a thread spans the files of its replies, a message without replies is a source too', async () => {
    const found = await find({
      'ovens/2024-05-02.json': [reply],
      'ovens/2024-05-01.json': [root, alone],
    })
    expect(new Set(found.pieces.map((piece) => piece.externalId))).toEqual(
      new Set(['C1/1714550400.000100', 'C1/1714550500.123456']),
    )
    expect(found.quotes('C1/1714550400.000100')).toEqual([
      {
        externalId: root.ts,
        text: root.text,
        speaker: 'Ada',
        createdAt: '2024-05-01T08:00:00.000Z',
      },
      {
        externalId: reply.ts,
        text: 'Fixed',
        speaker: 'Bo Miller',
        createdAt: '2024-05-02T08:53:20.000Z',
        replyingTo: root.ts,
      },
    ])
  })

  test('the first line of the root is the title, a reply gives only a placeholder', async () => {
    const { pieces } = await find({ 'ovens/2024-05-01.json': [root, reply] })
    const shared = { channelName: 'ovens', channelId: 'C1', createdAt: '2024-05-01T08:00:00.000Z' }
    expect(pieces.map((piece) => piece.fields)).toEqual([
      { ...shared, title: 'The oven is cold' },
      { ...shared, placeholderTitle: 'Thread in ovens' },
    ])
  })

  test('--threads-only skips messages that nobody answered', async () => {
    const found = await find(
      { 'ovens/2024-05-01.json': [root, alone, reply] },
      { threadsOnly: true },
    )
    expect(found.pieces).toHaveLength(2)
    expect(found.noted).toEqual({ 'skipped: messages that nobody answered': 1 })
  })

  test('--workspace gives URLs', async () => {
    const { pieces } = await find(
      { 'ovens/2024-05-01.json': [root, reply] },
      { workspace: 'bakery' },
    )
    const url = 'https://bakery.slack.com/archives/C1/p1714550400000100'
    expect(pieces.map((piece) => piece.fields.url)).toEqual([url, url])
  })

  test('a broadcast reply counts once', async () => {
    const broadcast = { ...reply, subtype: 'thread_broadcast' }
    const copy = {
      type: 'message',
      subtype: 'reply_broadcast',
      user: 'U2',
      ts: '1714640001.000000',
      text: '',
    }
    const found = await find({ 'ovens/2024-05-02.json': [broadcast, broadcast, copy] })
    expect(found.quotes(`C1/${root.ts}`)).toHaveLength(1)
    expect(found.noted).toEqual({
      'skipped: copies of replies that were also sent to the channel': 2,
    })
  })

  test('a deleted root is not sent, its replies are', async () => {
    const tombstone = { ...root, subtype: 'tombstone', text: 'This message was deleted.' }
    const found = await find({ 'ovens/2024-05-01.json': [tombstone, reply] })
    expect(found.pieces.map((piece) => piece.fields.title)).toEqual([undefined])
    expect(found.noted).toEqual({ 'skipped: messages that were deleted or hidden': 1 })
  })

  test('a text that an administrator has hidden is not replaced by the mark of it', async () => {
    const hidden = {
      ...alone,
      subtype: 'ekm_access_denied',
      text: "Your admins have suspended everyone's access.",
    }
    const found = await find({ 'ovens/2024-05-01.json': [hidden] })
    expect([found.pieces, found.noted]).toEqual([
      [],
      { 'skipped: messages that were deleted or hidden': 1 },
    ])
  })

  test('timestamps may be numbers, whose last zeros are lost', async () => {
    const found = await find({
      'ovens/2024-05-01.json': [{ ...reply, ts: 1714640000.0002, thread_ts: 1714550400.0001 }],
    })
    expect(found.quotes('C1/1714550400.000100')).toEqual([
      expect.objectContaining({ externalId: reply.ts }),
    ])
  })

  test('a notice by Slack is skipped unless someone replied to it', async () => {
    const notice = {
      subtype: 'channel_join',
      user: 'U1',
      text: '<@U1> has joined the channel',
      ts: '1714550400.000300',
    }
    const answered = {
      ...notice,
      ts: '1714550400.000400',
      thread_ts: '1714550400.000400',
      reply_count: 1,
    }
    const found = await find({ 'ovens/2024-05-01.json': [notice, answered] })
    expect(found.pieces.map((piece) => piece.quotes[0]?.text)).toEqual([
      '@Ada has joined the channel',
    ])
    expect(found.noted).toEqual({ 'skipped: notices by Slack, such as of who joined a channel': 1 })
  })

  test('an edit gives the text that it left, after the message', async () => {
    const edit = {
      subtype: 'message_changed',
      ts: '1714550900.000000',
      message: { ...alone, text: 'Good evening' },
    }
    const found = await find({ 'ovens/2024-05-01.json': [edit, alone] })
    expect(found.quotes(`C1/${alone.ts}`).map((quote) => quote.text)).toEqual([
      'Good morning',
      'Good evening',
    ])
  })
})

describe('conversations', () => {
  test.each([
    ['recipes', 'G1', 'recipes'],
    ['mpdm-ada--bo-1', 'G2', 'mpdm-ada--bo-1'],
    ['D1', 'D1', 'Ada, Bo Miller'],
    ['C0UNLISTED', 'C0UNLISTED', 'C0UNLISTED'],
  ])('the folder %s belongs to %s', async (folder, id, name) => {
    const { pieces } = await find({ [`${folder}/2024-05-01.json`]: [alone] })
    expect(pieces[0]).toMatchObject({
      externalId: `${id}/${alone.ts}`,
      fields: { channelId: id, channelName: name },
    })
  })

  test('a folder that no list names is noted, and gives its name as the id', async () => {
    const found = await find({ 'lost/2024-05-01.json': [alone] })
    expect(found.pieces[0]?.externalId).toBe(`lost/${alone.ts}`)
    expect(found.noted).toEqual({
      'replaced: files of channels that no list names: the folder is their id': 1,
    })
  })

  test('each workspace of an organisation has its own folders, and org_users.json has the names', async () => {
    const found = await readAll(slackFormat, [
      inputFile('org/org_users.json', users),
      inputFile('org/channels.json', [{ id: 'C7', name: 'ovens' }]),
      inputFile('org/teams/north/channels.json', [{ id: 'C8', name: 'ovens' }]),
      inputFile('org/ovens/2024-05-01.json', [alone]),
      inputFile('org/teams/north/ovens/2024-05-01.json', [alone]),
    ])
    expect(found.pieces.map((piece) => piece.externalId)).toEqual([
      `C7/${alone.ts}`,
      `C8/${alone.ts}`,
    ])
    expect(found.pieces.map((piece) => piece.quotes[0]?.speaker)).toEqual(['Ada', 'Ada'])
  })
})

describe('speakers', () => {
  test.each([
    [
      'a bot by the name that it chose',
      { subtype: 'bot_message', bot_id: 'B1', username: 'Oven alarm' },
      'Oven alarm',
    ],
    [
      'an app by its profile',
      { bot_id: 'B1', user: 'U9', bot_profile: { name: 'Alarm' } },
      'Alarm',
    ],
    [
      'a member of another workspace',
      { user: 'U9', user_profile: { display_name: '', real_name: 'Cy' } },
      'Cy',
    ],
    ['an unknown member by the id', { user: 'U9' }, 'U9'],
  ])('%s', async (_, fields, speaker) => {
    const { pieces } = await find({
      'ovens/2024-05-01.json': [{ ts: alone.ts, text: 'Hot', ...fields }],
    })
    expect(pieces[0]?.quotes[0]?.speaker).toBe(speaker)
  })
})

describe('texts', () => {
  test.each([
    ['<@U1> and <@U9|cy>, see <#C1> or <#C9|old-ovens>', '@Ada and @cy, see #ovens or #old-ovens'],
    ['<!here> <!channel> <!subteam^S1|@bakers> <!subteam^S2>', '@here @channel @bakers @S2'],
    ['<!date^1714550400^{date}|1 May>', '1 May'],
    ['<https://a.example/?x=1&amp;y=2>', 'https://a.example/?x=1&y=2'],
    [
      '<https://a.example|our shop> <http://b.example|b.example>',
      'our shop (https://a.example) b.example',
    ],
    ['<https://a.example/bread|bread>', 'bread (https://a.example/bread)'],
    ['<mailto:ada@a.example|ada@a.example>', 'ada@a.example'],
    ['1 &lt; 2 &amp;&amp; &amp;lt;b&amp;gt;', '1 < 2 && &lt;b&gt;'],
    [
      ':bread: :+1::skin-tone-3: :our_oven: :constructor: 10:30:00',
      '🍞 👍🏼 :our_oven: :constructor: 10:30:00',
    ],
  ])('%j reads as %j', async (text, decoded) => {
    const { pieces } = await find({ 'ovens/2024-05-01.json': [{ ...alone, text }] })
    expect(pieces[0]?.quotes[0]?.text).toBe(decoded)
  })

  test('blocks count where the text is empty', async () => {
    const words = [
      { type: 'text', text: 'a < b ' },
      { type: 'user', user_id: 'U1' },
      { type: 'emoji', name: 'bread' },
      { type: 'link', url: 'https://a.example', text: 'shop' },
      { type: 'broadcast', range: 'here' },
    ]
    const section = { type: 'rich_text_section', elements: words }
    const blocks = [
      { type: 'header', text: { type: 'plain_text', text: 'Alarm' } },
      { type: 'rich_text', elements: [section, { type: 'rich_text_list', elements: [section] }] },
      {
        type: 'section',
        text: { type: 'mrkdwn', text: '<@U1>' },
        fields: [{ type: 'mrkdwn', text: '200 °C' }],
      },
      { type: 'divider' },
      { type: 'image', alt_text: 'a loaf' },
    ]
    const line = 'a < b @Ada🍞shop (https://a.example)@here'
    const { pieces } = await find({ 'ovens/2024-05-01.json': [{ ...alone, text: '', blocks }] })
    expect(pieces[0]?.quotes[0]?.text).toBe(`Alarm\n${line}\n• ${line}\n@Ada\n200 °C\na loaf`)
  })

  test('the words of blocks within blocks count, and those of all their parts', async () => {
    const mrkdwn = (text: string) => ({ type: 'mrkdwn', text })
    const rich = {
      type: 'rich_text',
      elements: [{ type: 'rich_text_section', elements: [mrkdwn('Since six')] }],
    }
    const card = {
      type: 'card',
      title: mrkdwn('Rye'),
      subtitle: mrkdwn('dark'),
      body: mrkdwn('7 €'),
    }
    const blocks = [
      { type: 'container', title: mrkdwn('Ovens'), child_blocks: [section('Cold')] },
      {
        type: 'carousel',
        elements: [{ ...card, actions: [{ type: 'button', text: mrkdwn('Buy') }] }],
      },
      {
        type: 'plan',
        title: 'Plan',
        tasks: [{ type: 'task_card', title: 'Heat', details: rich, output: rich }],
      },
    ]
    const words = 'Ovens\nCold\nRye\ndark\n7 €\nBuy\nPlan\nHeat\nSince six\nSince six'
    expect((await quoteOf({ text: '', blocks })).text).toBe(words)
    expect((await quoteOf({ text: '', attachments: [{ blocks }] })).text).toBe(words)
  })

  test('attachments count where text and blocks are empty', async () => {
    const attachments = [
      {
        title: 'Build 7',
        text: 'passed',
        fields: [
          { title: 'by', value: '<@U1>' },
          { title: 'code', value: 0 },
        ],
        fallback: 'no',
      },
      { fallback: 'plain' },
    ]
    const { pieces } = await find({
      'ovens/2024-05-01.json': [{ ...alone, text: '', attachments }],
    })
    expect(pieces[0]?.quotes[0]?.text).toBe('Build 7\npassed\nby\n@Ada\ncode\n0\nplain')
  })

  test.each([
    ['run `redis-cli get cache:key:7` :fire:', 'run `redis-cli get cache:key:7` 🔥'],
    [
      '```\nuser-agent:date:message-id &lt;b&gt; <@U1>\n```:fire:',
      '```\nuser-agent:date:message-id <b> @Ada\n```🔥',
    ],
    [
      'see urn:book:12, bread:bread: (:bread:) :bread::bread:',
      'see urn:book:12, bread🍞 (🍞) 🍞🍞',
    ],
    ['`a\n:bread:`', '`a\n🍞`'],
    [':thumbsup: :flag-de: :saluting_face::constructor:', '👍 🇩🇪 🫡:constructor:'],
    ['です:bread:よろしく и:bread:я', 'です🍞よろしく и:bread:я'],
  ])('code and words have no emoji: %j reads as %j', async (text, decoded) => {
    expect((await quoteOf({ text })).text).toBe(decoded)
  })

  test('rich text has emoji of its own, and none in its words', async () => {
    const elements = [
      { type: 'text', text: 'at 10:bread: or :key:', style: { code: true } },
      { type: 'emoji', name: '+1', skin_tone: 3 },
      { type: 'text', text: 'x' },
      { type: 'emoji', name: 'our_oven' },
    ]
    const blocks = [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements }] }]
    expect((await quoteOf({ text: '', blocks })).text).toBe('at 10:bread: or :key:👍🏼x:our_oven:')
  })

  test('a shared message and what an app attaches stand beside the text, a preview of a link is counted', async () => {
    const shared = {
      is_share: true,
      author_name: 'Bo',
      text: 'It smells',
      from_url: 'x',
      files: [{ name: 'a.png' }],
    }
    const silent = {
      is_msg_unfurl: true,
      from_url: 'x',
      message_blocks: [{ message: { blocks: [section('It burns')] } }],
    }
    const preview = { from_url: 'https://a.example', title: 'A', image_url: 'x' }
    const found = await find({
      'ovens/2024-05-01.json': [{ ...alone, attachments: [shared, silent, preview] }],
    })
    expect(found.pieces[0]?.quotes[0]).toMatchObject({
      text: 'Good morning\nIt smells\nIt burns',
      attachments: ['a.png'],
    })
    expect(found.noted).toEqual({ 'skipped: previews of links': 1 })
    const alarm = {
      author_name: 'Oven 3',
      text: 'cold',
      footer: 'v2',
      image_url: 'x',
      fallback: 'f',
    }
    expect((await quoteOf({ attachments: [alarm] })).text).toBe('Good morning\nOven 3\ncold\nv2')
  })

  test('blocks of an app stand beside its text, once', async () => {
    const rich = { type: 'rich_text', elements: [{ elements: [{ type: 'text', text: 'Loaf' }] }] }
    const rows = [[{ type: 'raw_text', text: 'Rye' }, rich], [{ type: 'raw_text', text: '7' }]]
    const blocks = [
      section('*Good* morning'),
      rich,
      { type: 'table', rows },
      { type: 'divider' },
      { type: 'image' },
    ]
    const found = await find({ 'ovens/2024-05-01.json': [{ ...alone, bot_id: 'B1', blocks }] })
    expect(found.pieces[0]?.quotes[0]?.text).toBe('Good morning\nLoaf\nRye | Loaf\n7')
    expect(found.noted).toEqual({ 'skipped: blocks without words': 1 })
    expect((await quoteOf({ blocks: [rich] })).text).toBe('Good morning')
    expect((await quoteOf({ bot_id: 'B1', blocks: [section('Good morning all')] })).text).toBe(
      'Good morning all',
    )
  })

  test.each([
    "This content can't be displayed.",
    'This content can’t be displayed.',
    'This message contains interactive elements.',
  ])('%j stands for blocks or attachments', async (text) => {
    expect((await quoteOf({ text, blocks: [section('Hot')] })).text).toBe('Hot')
    expect(
      (await quoteOf({ text, attachments: [{ text: 'Hot', fallback: '[no preview available]' }] }))
        .text,
    ).toBe('Hot')
    expect((await quoteOf({ text })).text).toBe('')
  })

  test('files that were deleted are counted', async () => {
    const files = [{ id: 'F2', mode: 'tombstone' }, { name: 'a' }]
    const { noted } = await find({ 'ovens/2024-05-01.json': [{ ...alone, files }] })
    expect(noted).toEqual({ 'skipped: files that were deleted or hidden': 1 })
  })

  test('of two copies the edited one comes last, whichever file comes first', async () => {
    const edited = {
      ...alone,
      text: 'Good evening',
      edited: { user: 'U1', ts: '1714550900.000000' },
    }
    const found = await find({ 'ovens/2024-05-01.json': [edited, alone] })
    expect(found.quotes(`C1/${alone.ts}`).map(({ text }) => text)).toEqual([
      'Good morning',
      'Good evening',
    ])
  })

  test('what a person wrote as a file is text, as it is, and what the export cuts is counted', async () => {
    const mail = {
      mode: 'email',
      title: 'Oven',
      subject: 'Oven',
      plain_text: 'It smokes.\nCome :fire:',
    }
    const cutMail = { mode: 'email', name: 'Rye', preview: '<p>No more &lt;rye&gt;</p>' }
    const snippet = {
      mode: 'snippet',
      name: 'a.sql',
      preview: 'a &amp; <b>',
      preview_is_truncated: true,
    }
    const post = {
      mode: 'space',
      title: 'Plan',
      preview: '<document><h1>Plan</h1><p>Bake</p></document>',
    }
    const clip = {
      mode: 'hosted',
      name: 'a.mp4',
      transcription: { status: 'complete', preview: { content: 'Hi all' } },
    }
    const image = { mode: 'hosted', name: 'a.png', alt_txt: 'A loaf', preview: 'no words' }
    const all = [mail, cutMail, snippet, post, clip, image]
    const messages = all.map((file, at) => ({
      ...alone,
      ts: `171455050${at}.000100`,
      text: '',
      files: [file],
    }))
    const { pieces, noted } = await find({ 'ovens/2024-05-01.json': messages })
    expect(pieces.map(({ quotes }) => quotes[0]?.text)).toEqual([
      'Oven\nIt smokes.\nCome :fire:',
      'No more <rye>',
      'a &amp; <b>',
      'Plan\n\nBake',
      'Hi all',
      'A loaf',
    ])
    expect(noted).toEqual({
      'skipped: ends of snippets and other files whose words the export cuts': 1,
    })
  })

  test('files are named, and title a message without text', async () => {
    const files = [{ name: 'loaf.jpg' }, { id: 'F2', mode: 'tombstone' }]
    const { pieces } = await find({ 'ovens/2024-05-01.json': [{ ...alone, text: '', files }] })
    expect(pieces[0]?.quotes[0]).toMatchObject({ text: '', attachments: ['loaf.jpg'] })
    expect(pieces[0]?.fields.title).toBe('[file: loaf.jpg]')
  })
})

test('rejects what is no message, with its place, and reads on', async () => {
  const found = await readAll(slackFormat, [
    ...lists,
    inputFile('ovens/2024-05-01.json', '[{"text": "x"}, 7, {"ts": 1 2}, '),
  ])
  expect(found.rejected).toEqual([
    expect.objectContaining({
      reason: 'a message without a timestamp `ts`',
      place: place('/0'),
      record: { text: 'x' },
    }),
    expect.objectContaining({
      reason: 'a message without a timestamp `ts`',
      place: place('/1'),
      record: 7,
    }),
    expect.objectContaining({
      reason: expect.stringMatching(/^The record is not JSON: /),
      place: place('/2'),
      record: '{"ts": 1 2}',
    }),
    expect.objectContaining({ reason: 'The file ends before its JSON does.' }),
  ])
})

test('a list of names that is no list is counted', async () => {
  const found = await readAll(slackFormat, [
    inputFile('users.json', { members: users }),
    inputFile('ovens/2024-05-01.json', [root]),
  ])
  expect(found.noted).toMatchObject({
    'skipped: members and channels without an id or beyond the bound': 1,
  })
})

test('a file that is no list of messages, or lies in no folder, is rejected and harms no other', async () => {
  const found = await find({
    'ovens/2024-05-01.json': { ok: true, messages: [root] },
    '2024-05-01.json': [root],
  })
  expect(found.rejected.map(({ reason, place }) => [reason, place.path])).toEqual([
    ['a message without a timestamp `ts`', 'ovens/2024-05-01.json'],
    ['The file lies in no folder of a channel: pass the whole export.', '2024-05-01.json'],
  ])
})

test('a record that nests too deep is rejected as any other', async () => {
  const deep = `[${'['.repeat(20_000)}${']'.repeat(20_000)}]`
  const { rejected } = await readAll(slackFormat, [
    ...lists,
    inputFile('ovens/2024-05-01.json', deep),
  ])
  expect(rejected.map(({ reason }) => reason)).toEqual(['a message without a timestamp `ts`'])
})

test('bots without a name have that of integration_logs.json', async () => {
  const logs = [
    { service_id: '29', service_type: 'Oven Alarm', date: '1714555700', change_type: 'added' },
    { service_id: '28', service_type: 'Other', date: '1714555700', change_type: 'updated' },
    { app_id: 'A2', app_type: 'Recipe Bot', date: '1714555600', change_type: 'added' },
  ]
  const messages = [
    {
      ts: '1714555700.000017',
      subtype: 'bot_add',
      bot_id: 'B1',
      user: 'U1',
      text: 'added an integration',
    },
    { ts: '1714555800.000001', subtype: 'bot_message', bot_id: 'B1', text: 'Hot' },
    { ts: '1714555800.000002', subtype: 'bot_message', bot_id: 'B2', app_id: 'A2', text: 'Rye' },
    { ts: '1714555800.000003', subtype: 'bot_message', bot_id: 'B3', text: 'Unknown' },
  ]
  const files = [
    inputFile('integration_logs.json', logs),
    inputFile('ovens/2024-05-01.json', messages),
  ]
  const found = await readAll(slackFormat, [...lists, ...files])
  expect(found.pieces.map(({ quotes }) => quotes[0]?.speaker)).toEqual([
    'Oven Alarm',
    'Recipe Bot',
    'B3',
  ])
  expect(found.noted).toEqual({ 'skipped: notices by Slack, such as of who joined a channel': 1 })
})

test('guests and bots that no list names have the names of their messages, wherever these stand', async () => {
  const guest = {
    user: 'U9',
    ts: '1714640000.000001',
    text: 'Hi',
    user_profile: { display_name: 'Cy', real_name: 'Cy C' },
  }
  const bot = {
    user: 'U8',
    bot_id: 'B8',
    ts: '1714640000.000002',
    text: 'Hot',
    bot_profile: { name: 'Alarm' },
  }
  const days = {
    'ovens/2024-05-01.json': [
      { ...alone, text: 'Thanks <@U9>, <@U8> and <@U7>' },
      {
        ...alone,
        ts: '1714550500.123457',
        subtype: 'thread_broadcast',
        thread_ts: root.ts,
        user: 'U9',
      },
      {
        ...alone,
        ts: '1714550500.123457',
        subtype: 'thread_broadcast',
        thread_ts: root.ts,
        user: 'U9',
      },
    ],
    'ovens/2024-05-02.json': [
      guest,
      bot,
      { ...guest, ts: '1714640000.000003', user: 'U7', user_profile: undefined },
    ],
  }
  const { pieces, noted } = await find(days)
  const said = pieces
    .flatMap(({ quotes }) => quotes)
    .toSorted((a, b) => Number(a.externalId) - Number(b.externalId))
  expect(said.map(({ speaker, text }) => [speaker, text])).toEqual([
    ['Ada', 'Thanks @Cy, @Alarm and @U7'],
    ['Cy', 'Good morning'],
    ['Cy', 'Hi'],
    ['Alarm', 'Hot'],
    ['U7', 'Hi'],
  ])
  expect(noted).toEqual({ 'skipped: copies of replies that were also sent to the channel': 1 })
})

test('a mail to the channel is said by its sender', async () => {
  const from = [{ address: 'cy@example.org', name: 'Cy' }]
  const mail = { mode: 'email', subject: 'Rye', plain_text: 'No rye', from }
  expect(await quoteOf({ user: 'USLACKBOT', text: '', files: [mail] })).toMatchObject({
    speaker: 'Cy',
    text: 'Rye\nNo rye',
  })
  expect(await quoteOf({ user: 'USLACKBOT', text: 'Reminder' })).toMatchObject({
    speaker: 'Slackbot',
  })
})

test('notes files without messages', async () => {
  const found = await readAll(slackFormat, [
    ...lists,
    inputFile('ovens/2024-05-01.json', [root]),
    inputFile('ovens/canvas.json', []),
    inputFile('ovens/attachments/a.png', 'x'),
  ])
  expect(found.noted).toEqual({
    'skipped: files without messages: file attachments': 1,
    'skipped: files without messages: media': 1,
  })
})

function section(text: string) {
  return { type: 'section', text: { type: 'mrkdwn', text } }
}

async function quoteOf(fields: object) {
  const { pieces } = await find({ 'ovens/2024-05-01.json': [{ ...alone, ...fields }] })
  return pieces[0]?.quotes[0] ?? { text: undefined }
}

function place(pointer: string) {
  return { path: 'ovens/2024-05-01.json', line: 1, pointer }
}

function find(days: Readonly<Record<string, unknown>>, options = {}) {
  const files: InputFile[] = Object.entries(days).map(([path, messages]) =>
    inputFile(path, messages),
  )
  return readAll(slackFormat, [...lists, ...files], options)
}

test('messages that wait for names are bounded in number, and the others are counted', async () => {
  const messages = Array.from({ length: 10_002 }, (_, at) => ({
    user: 'U9',
    text: 'Hi',
    ts: `1714556000.${at + 100_000}`,
  }))
  const { pieces, noted } = await readAll(slackFormat, [
    inputFile('users.json', []),
    inputFile('channels.json', [{ id: 'C1', name: 'general' }]),
    inputFile('general/2024-05-01.json', messages),
  ])
  const reason =
    'replaced: messages that name members by their ids, because more than 10000 messages wait for names'
  expect([pieces.length, noted[reason]]).toEqual([10_002, 2])
})
