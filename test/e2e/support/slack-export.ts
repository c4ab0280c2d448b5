import { makeZip } from '@sluice/test-support'

/**
 * A Slack export of threads whose replies lie in the file of the next day. `more` stands at the end
 * of each reply.
 */
export function slackExport(threads: number, more = ''): Buffer {
  const days: Record<string, object[]> = { '2024-05-01': [], '2024-05-02': [] }
  for (let at = 0; at < threads; at++) {
    const root = `${1_714_556_000 + at}.000100`
    const reply = `${1_714_642_400 + at}.000200`
    days['2024-05-01']?.push({
      type: 'message',
      ts: root,
      thread_ts: root,
      user: 'U1',
      text: `Question ${at}`,
      reply_count: 1,
    })
    days['2024-05-02']?.push({
      type: 'message',
      ts: reply,
      thread_ts: root,
      user: 'U2',
      text: `Answer ${at}${more}`,
    })
  }
  return makeZip({
    'channels.json': JSON.stringify([{ id: 'C1', name: 'general' }]),
    'users.json': JSON.stringify([
      { id: 'U1', name: 'ada' },
      { id: 'U2', name: 'grace' },
    ]),
    ...Object.fromEntries(
      Object.entries(days).map(([day, list]) => [`general/${day}.json`, JSON.stringify(list)]),
    ),
  })
}
