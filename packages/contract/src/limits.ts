// The bounds of one request, their defaults and their descriptions.

/** The defaults. `LIMIT_DETAILS` has the unit and the meaning of each. */
export const DEFAULT_LIMITS = {
  bodyBytes: 10 * 1024 * 1024,
  nesting: 1_000,
  quotes: 10_000,
  externalId: 512,
  title: 2_000,
  text: 100_000,
  url: 2_048,
  description: 20_000,
  string: 2_000,
}

export type LimitName = keyof typeof DEFAULT_LIMITS
export type Limits = Readonly<Record<LimitName, number>>

export type LimitDetail = { unit: 'bytes' | 'levels' | 'quotes' | 'characters'; description: string }

/** The unit and meaning of each limit, for `GET /limits` and the table of settings. Characters are Unicode code points. */
export const LIMIT_DETAILS: Readonly<Record<LimitName, LimitDetail>> = {
  bodyBytes: { unit: 'bytes', description: 'Size of a request body, before and after it is inflated.' },
  nesting: { unit: 'levels', description: 'Depth of arrays and objects in a request body, unknown fields included.' },
  quotes: { unit: 'quotes', description: 'Number of quotes in one request.' },
  externalId: { unit: 'characters', description: "Length of a source's or a quote's externalId, and of replyingTo." },
  title: { unit: 'characters', description: "Length of a source's title." },
  text: { unit: 'characters', description: "Length of a quote's text." },
  url: { unit: 'characters', description: "Length of a source's url." },
  description: { unit: 'characters', description: "Length of a source's description." },
  string: { unit: 'characters', description: 'Length of every other string.' },
}
