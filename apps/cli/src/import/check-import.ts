// Checks what was read with the parser of the API, without a service: what `--dry-run` does instead of sending.
import { createThreadParser, DEFAULT_LIMITS } from '@sluice/contract'
import { createLedger, type Ledger, type Sink } from './account/ledger.ts'
import { feedEvents } from './feed-events.ts'
import type { ImportEvent } from './gather/gather-threads.ts'
import type { ImportDeps, ImportRequest, RunState, Stops } from './import-request.ts'
import { createShaper } from './shape/shape-thread.ts'

/** Resolves when everything is checked. */
export async function checkImport(
  events: AsyncIterable<readonly ImportEvent[]>,
  { idPrefix, maxErrors }: ImportRequest,
  deps: ImportDeps,
  state: RunState,
  { stopping, afterErrors }: Stops,
): Promise<void> {
  const { tally } = state
  const ledger = createLedger(tally, (record) => {
    deps.showRejected(record)
    afterErrors(tally, maxErrors)
  })
  using _display = deps.show(() => state)
  const shape = createShaper({ limits: DEFAULT_LIMITS, idPrefix })
  await feedEvents(events, 0, { ledger, sink: createCheck(ledger), shape, stopping })
}

/** A thread whose title only the service may know is checked with this one. */
const SOME_TITLE = 'Untitled'

/** A sink that sends nothing. */
function createCheck(ledger: Ledger): Sink {
  const parse = createThreadParser(DEFAULT_LIMITS)
  return {
    add({ request, placeholderTitle, place, entry }) {
      const parsed = parse({ ...request, title: request.title ?? placeholderTitle ?? SOME_TITLE }, { strict: false })
      if (!parsed.ok) {
        const [first] = parsed.errors
        const pointer = `${place.pointer ?? ''}${first?.pointer ?? ''}`
        const reason = parsed.errors.map(({ message }) => message).join(' ')
        entry.rejected.push({ reason, place: { ...place, pointer }, record: request })
      } else {
        // The parser merges copies of a message, as the API does.
        entry.checkedQuotes = (entry.checkedQuotes ?? 0) + parsed.thread.quotes.length
      }
      ledger.close(entry)
      return undefined
    },
    flush: async () => {},
  }
}
