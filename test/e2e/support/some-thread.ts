/** A request body as its sender wrote it, valid or not. */
export type Body = Record<string, unknown>

let made = 0

/**
 * A valid request for a source of its own, with these fields replaced. `undefined` leaves a field
 * out.
 */
export function someThread(changes: Body = {}): Body {
  made += 1
  return {
    title: 'Which keyboard do you use?',
    externalId: `thread-${process.pid}-${made}`,
    service: 'slack',
    quotes: [{ text: 'A split one, for my wrists.' }],
    ...changes,
  }
}

/** A valid request whose first quote has these fields replaced. */
export function someQuote(changes: Body): Body {
  return someThread({ quotes: [{ text: 'A split one.', ...changes }] })
}
