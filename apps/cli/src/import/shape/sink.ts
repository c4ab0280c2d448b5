// Shaped requests, and the sink that sends or checks them.
import type { ThreadRequest } from '@sluice/contract'
import type { Noted, Place } from '@sluice/formats'
import type { Entry } from '../account/ledger.ts'

/** Counts something that was left out, cut or replaced. */
export type Note = (kind: Noted['kind'], reason: string) => void

/** A request whose title is perhaps not known yet. */
export type UntitledRequest = Omit<ThreadRequest, 'title'> & { title?: string }

/** A request of an entry of the ledger. */
export interface Outgoing {
  request: UntitledRequest
  /** The title, if the request has none and none is stored. */
  placeholderTitle?: string | undefined
  place: Place
  entry: Entry
}

export interface Sink {
  /** Returns a promise if the caller has to wait before it adds more. */
  add(outgoing: Outgoing): Promise<void> | undefined
  /** Resolves when everything that was added is settled. */
  flush(): Promise<void>
}
