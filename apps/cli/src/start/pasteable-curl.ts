const thread = {
  title: 'Dark mode, please',
  externalId: 'thread-1',
  service: 'slack',
  quotes: [
    { externalId: 'message-1', speaker: 'Ada', text: 'Could the editor have a dark mode?' },
    { externalId: 'message-2', speaker: 'Grace', text: 'It would help at night.', replyingTo: 'message-1' },
  ],
}

/** A command that posts a small thread, to paste into a shell. */
export function pasteableCurl(apiUrl: string, key: string): string {
  const headers = [`x-api-key: ${key}`, 'content-type: application/json'].map((header) => `-H '${header}'`)
  return `curl -sS ${apiUrl}/sources ${headers.join(' ')} -d '${JSON.stringify(thread)}'`
}
