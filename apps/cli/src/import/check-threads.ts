// Checks requests with the parser of the API, without a service: what `--dry-run` does instead of sending.
import { createThreadParser, type Limits } from '@sluice/contract'
import type { Ledger } from './ledger.ts'
import type { Sink } from './sink.ts'

/** A thread whose title only the service may know is checked with this one. */
const SOME_TITLE = 'Untitled'

/** Nothing of it is created, updated or unchanged: it counts as neither. */
export function createCheck(limits: Limits, ledger: Ledger): Sink {
  const parse = createThreadParser(limits)
  return {
    add({ request, placeholderTitle, place, entry }) {
      const parsed = parse({ ...request, title: request.title ?? placeholderTitle ?? SOME_TITLE }, { strict: false })
      if (!parsed.ok) {
        const [first] = parsed.errors
        const pointer = `${place.pointer ?? ''}${first?.pointer ?? ''}`
        const reason = parsed.errors.map(({ message }) => message).join(' ')
        entry.rejected.push({ reason, place: { ...place, pointer }, record: request })
      } else {
        entry.checkedQuotes = (entry.checkedQuotes ?? 0) + request.quotes.length
      }
      ledger.close(entry)
      return undefined
    },
    flush: async () => {},
  }
}
