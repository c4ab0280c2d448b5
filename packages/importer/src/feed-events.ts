// Opens an entry in the ledger for each event of the input, and passes each thread's requests to a
// sink.
import type { Ledger, Note, Sink } from './account/ledger.ts'
import type { ConversationCounter } from './gather/conversation-counts.ts'
import {
  type Events,
  type ImportEvent,
  isEmptyConversation,
  type ThreadInput,
} from './gather/gather-threads.ts'
import type { ShapeThread } from './shape/shape-thread.ts'

interface FeedDeps {
  /** Its tally says how many events an earlier run has settled. These are not fed again. */
  ledger: Ledger
  shape: ShapeThread
  conversations: ConversationCounter | undefined
  sink: Sink
  stopping: AbortSignal
}

/** The most events that wait for an earlier one, such as a thread that is sent again. */
const WAITING_EVENTS = 20_000

/** Feeds all events, and resolves when all are settled. Throws the reason of `stopping`. */
export async function feedEvents(
  events: Events,
  { ledger, shape, conversations, sink, stopping }: FeedDeps,
): Promise<void> {
  const settled = ledger.tally.events
  async function feedThread(thread: ThreadInput): Promise<void> {
    const entry = ledger.open()
    if (isEmptyConversation(thread)) return ledger.close(entry)
    const note: Note = (kind, reason) => void entry.notes.push([kind, reason])
    const { requests, ...shaped } = shape(thread, note)
    conversations?.add(thread, requests)
    for (const request of requests) {
      entry.open += 1
      const room = sink.add({ request, ...shaped, place: thread.place, entry })
      if (room !== undefined) await room
    }
    ledger.close(entry)
  }

  let number = 0
  for await (const list of events) {
    stopping.throwIfAborted()
    for (const event of list) {
      number += 1
      if (number <= settled) {
        // The shaper must see these quotes, because later parts of the source repeat some of them.
        if (event.kind === 'piece' && (event.isContinued || conversations)) {
          const { requests } = shape(event, () => {})
          conversations?.add(event, requests)
        }
      } else if (event.kind === 'piece') await feedThread(event)
      else feedOther(event, ledger)
    }
    await ledger.untilAtMost(WAITING_EVENTS, stopping)
  }
  await sink.flush()
  stopping.throwIfAborted()
}

function feedOther(event: Exclude<ImportEvent, ThreadInput>, ledger: Ledger): void {
  const entry = ledger.open()
  if (event.kind === 'rejected') entry.rejected.push(event)
  else entry.notes.push([event.kind, event.reason])
  ledger.close(entry)
}
