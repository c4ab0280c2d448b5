import type { KeyRecord } from './key-record.ts'

/** A key can't be made as it was asked for; the message says which detail is at fault, and how. */
export class InvalidKeyDetailError extends Error {
  override readonly name = 'InvalidKeyDetailError'
}

/** No live key has the name or id that was given. */
export class UnknownKeyError extends Error {
  override readonly name = 'UnknownKeyError'

  constructor(reference: string) {
    super(`No live key has the name or id ${JSON.stringify(reference)}.`)
  }
}

/** Several keys have the name or the beginning of an id that was given; `candidates` are those. */
export class AmbiguousKeyError extends Error {
  override readonly name = 'AmbiguousKeyError'
  readonly candidates: readonly KeyRecord[]

  constructor(reference: string, candidates: readonly KeyRecord[]) {
    const lines = candidates.map(({ id, tenant, name }) => `  ${id.slice(0, 12)}  ${tenant}  ${name}`)
    super([`Several keys go by ${JSON.stringify(reference)}; name one by its id:`, ...lines].join('\n'))
    this.candidates = candidates
  }
}
