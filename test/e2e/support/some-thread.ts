/** A request body as its sender wrote it, right or wrong. */
export type Body = Record<string, unknown>

let made = 0

/** A good request for a source of its own, with these fields set otherwise; `undefined` leaves one out. */
export function someThread(changes: Body = {}): Body {
  made += 1
  return {
    title: 'Which keyboard do you use?',
    externalId: `thread-${made}`,
    service: 'slack',
    quotes: [{ text: 'A split one, for my wrists.' }],
    ...changes,
  }
}

/** A good request whose first quote has these fields set otherwise. */
export function someQuote(changes: Body): Body {
  return someThread({ quotes: [{ text: 'A split one.', ...changes }] })
}
