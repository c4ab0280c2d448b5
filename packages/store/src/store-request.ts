import type { Thread } from '@sluice/contract'

/** One accepted request, as the store takes it. */
export interface StoreRequest {
  /** Unique to the request, and the same each time it is delivered. */
  id: string
  tenant: string
  /** Its place in the one order of acceptance, in µs since 1970; unique to the request. */
  stamp: number
  /** It may have been worked on before, by a worker that did not finish. */
  redelivered: boolean
  thread: Thread
  /** Where it is known: names what the thread says, so that equal threads have equal ones. */
  digest?: string
}

/** What merging needs to know of the request that is merged. */
export type Said = Pick<StoreRequest, 'id' | 'stamp' | 'redelivered'>
