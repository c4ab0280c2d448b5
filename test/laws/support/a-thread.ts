import type { QuoteFields } from '@sluice/contract'
import type { PostRequest } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { requestOf } from './histories.ts'

let threads = 0

/**
 * A thread that no other test has, and the requests that say something of it, by their place in the
 * order.
 */
export function aThread() {
  const source = { service: 'slack' as const, externalId: `thread-${threads++}`, title: 'title' }
  function says(place: number, ...quotes: QuoteFields[]): PostRequest {
    const request = requestOf({ source, quotes }, place)
    return { ...request, id: `${source.externalId}-${request.id}` }
  }
  return { says, sourceId: sourceIdOf(requestOf({ source, quotes: [] }, 0).tenant, source) }
}
