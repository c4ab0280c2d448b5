// Completes requests by what is stored: titles and dates of threads whose root is not in the input, and the sources that
// a conversation of mails already has.

import { type Client, pagesOf } from '@sluice/client'
import { parseIsoDate, type QuoteRequest, type ThreadRequest } from '@sluice/contract'
import type { Outgoing, UntitledRequest } from '../account/ledger.ts'

/** A request that has all that it needs. A conversation that is stored as several sources becomes several requests. */
export interface CompleteRequest extends Outgoing {
  request: ThreadRequest
}

/** Batches in flight, and what they send: it may not be stored yet. */
export type InFlight = Map<Promise<void>, readonly CompleteRequest[]>

interface StoredFields {
  title: string
  createdAt?: string | null | undefined
}

interface CompleteDeps {
  client: Pick<Client, 'lookUpSources' | 'getSource'>
  signal: AbortSignal
}

/** Stands for a title that neither input nor store has. The API refuses it, and names the field. */
const NO_TITLE = ''

/** Returns the requests of a batch in their order. */
export async function completeRequests(
  batch: readonly Outgoing[],
  inFlight: InFlight,
  deps: CompleteDeps,
): Promise<CompleteRequest[]> {
  const incomplete = batch.filter(({ request, placeholderTitle, conversation }) => {
    const lacksDate = placeholderTitle !== undefined && request.createdAt === undefined
    return conversation !== undefined || request.title === undefined || lacksDate
  })
  const names = new Set(incomplete.flatMap((one) => idsOf(one).map((id) => nameOf(one.request, id))))
  const earlier = [...inFlight].filter(([, sent]) => sent.some(({ request }) => names.has(nameOf(request))))
  await Promise.all(earlier.map(([sent]) => sent))
  const stored = await lookUp(incomplete, deps)
  const complete: CompleteRequest[] = []
  for (const outgoing of batch) {
    const requests = await placeMails(outgoing, stored, deps)
    outgoing.entry.open += requests.length - 1
    for (const request of requests)
      complete.push({ ...outgoing, request: fillFields(request, outgoing.placeholderTitle, stored) })
  }
  return complete
}

/** The ids of sources that the request may belong to. */
function idsOf({ request, conversation }: Outgoing): readonly string[] {
  return [request.externalId, ...(conversation?.ids ?? [])]
}

function nameOf({ service, externalId }: Pick<UntitledRequest, 'service' | 'externalId'>, id = externalId): string {
  return `${service}/${id}`
}

async function lookUp(
  incomplete: readonly Outgoing[],
  { client, signal }: CompleteDeps,
): Promise<Map<string, StoredFields>> {
  const stored = new Map<string, StoredFields>()
  for (const [service, some] of Map.groupBy(incomplete, ({ request }) => request.service)) {
    const ids = new Set(some.flatMap(idsOf))
    for (const source of await client.lookUpSources(service, [...ids], { signal })) stored.set(nameOf(source), source)
  }
  return stored
}

/**
 * A conversation stays the source that it is stored as, whichever of its mails were there then. If it is stored as
 * several sources, their mails stay, and new ones join the earliest.
 */
async function placeMails(
  { request, conversation, entry }: Outgoing,
  stored: ReadonlyMap<string, StoredFields>,
  { client, signal }: CompleteDeps,
): Promise<UntitledRequest[]> {
  const { service, quotes } = request
  const dateOf = (id: string) => stored.get(nameOf(request, id))?.createdAt ?? ''
  const sources = (conversation?.ids ?? [])
    .filter((id) => stored.has(nameOf(request, id)))
    .toSorted((one, other) => (dateOf(one) < dateOf(other) ? -1 : 1))
  // Later requests of the conversation need no look-up of the others.
  if (conversation !== undefined) conversation.ids = sources
  const [earliest = request.externalId, ...others] = sources
  let placed = new Map<string, QuoteRequest[]>([[earliest, quotes]])
  if (others.length > 0) {
    if (entry.notes.every(([, reason]) => reason !== SEVERAL)) entry.notes.push(['skipped', SEVERAL])
    const sourceOf = new Map<string, string>()
    for (const externalId of sources.toReversed())
      for await (const page of pagesOf(client, { service, externalId }, signal))
        for (const quote of page.quotes) if (quote.externalId !== undefined) sourceOf.set(quote.externalId, externalId)
    placed = Map.groupBy(quotes, ({ externalId }) => sourceOf.get(externalId ?? '') ?? earliest)
  }
  return Array.from(placed, ([externalId, quotes]) =>
    // The fields are those of the topmost mail.
    externalId === request.externalId ? { ...request, quotes } : { service, externalId, quotes },
  )
}

const SEVERAL = 'merges of sources that are one conversation'

/**
 * Without a title, the stored one stays. Without a date, the earliest one of the quotes counts if nothing, or something
 * later, is stored. `stored` gets the result, for later requests of the batch.
 */
function fillFields(
  request: UntitledRequest,
  placeholderTitle: string | undefined,
  stored: Map<string, StoredFields>,
): ThreadRequest {
  const known = stored.get(nameOf(request))
  const title = request.title ?? known?.title ?? placeholderTitle ?? NO_TITLE
  const earliest = placeholderTitle === undefined ? undefined : earliestOf(request.quotes)
  const isEarlier = earliest !== undefined && !(known?.createdAt && known.createdAt < earliest)
  const createdAt = isoDate(request.createdAt) ?? (isEarlier ? earliest : undefined)
  stored.set(nameOf(request), { title, createdAt: createdAt ?? known?.createdAt })
  return { ...request, title, ...(createdAt !== undefined && { createdAt: request.createdAt ?? createdAt }) }
}

function earliestOf(quotes: readonly QuoteRequest[]): string | undefined {
  const [earliest] = quotes.flatMap(({ createdAt }) => isoDate(createdAt) ?? []).sort()
  return earliest
}

/** In UTC, so that dates compare as texts. */
function isoDate(date: string | null | undefined): string | undefined {
  return date ? parseIsoDate(date) : undefined
}
