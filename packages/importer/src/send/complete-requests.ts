// Completes requests by what is stored: titles, dates, and the sources that a conversation of mails
// is stored as.

import { type Client, pagesOf } from '@sluice/client'
import { parseIsoDate, type QuoteRequest, type ThreadRequest } from '@sluice/contract'
import type { Outgoing, UntitledRequest } from '../account/ledger.ts'

/**
 * A request that can be posted. A conversation that is stored as several sources becomes several
 * requests.
 */
export interface CompleteRequest extends Outgoing {
  request: ThreadRequest
}

/** The batches in flight with their requests, whose threads may not be stored yet. */
export type InFlight = Map<Promise<void>, readonly CompleteRequest[]>

/** By service and externalId. */
type Stored = Map<string, { title: string; createdAt?: string | null | undefined }>

interface CompleteDeps {
  client: Pick<Client, 'lookUpSources' | 'getSource'>
  signal: AbortSignal
}

/** Stands for a title that neither input nor store has. The API refuses it, and names the field. */
const NO_TITLE = ''

/**
 * Completes the requests of a batch. Waits for batches in flight that have requests for the same
 * sources.
 */
export async function completeRequests(
  batch: readonly Outgoing[],
  inFlight: InFlight,
  deps: CompleteDeps,
): Promise<CompleteRequest[]> {
  const incomplete = batch.filter(({ request, placeholderTitle, conversation }) => {
    const lacksDate = placeholderTitle !== undefined && request.createdAt === undefined
    return conversation !== undefined || request.title === undefined || lacksDate
  })
  const names = new Set(
    incomplete.flatMap((one) => idsOf(one).map((id) => nameOf(one.request, id))),
  )
  const earlier = [...inFlight].filter(([, sent]) =>
    sent.some(({ request }) => names.has(nameOf(request))),
  )
  await Promise.all(earlier.map(([sent]) => sent))
  const stored = await lookUp(incomplete, deps)
  const complete: CompleteRequest[] = []
  for (const outgoing of batch) {
    const requests = await placeMails(outgoing, stored, deps)
    outgoing.entry.open += requests.length - 1
    for (const request of requests)
      complete.push({
        ...outgoing,
        request: fillFields(request, outgoing.placeholderTitle, stored),
      })
  }
  return complete
}

/** The ids of sources that the request may belong to. */
function idsOf({ request, conversation }: Outgoing): readonly string[] {
  return [request.externalId, ...(conversation?.ids ?? [])]
}

function nameOf(
  { service, externalId }: Pick<UntitledRequest, 'service' | 'externalId'>,
  id = externalId,
): string {
  return `${service}/${id}`
}

async function lookUp(
  incomplete: readonly Outgoing[],
  { client, signal }: CompleteDeps,
): Promise<Stored> {
  const stored: Stored = new Map()
  for (const service of new Set(incomplete.map(({ request }) => request.service))) {
    const ids = new Set(
      incomplete.filter(({ request }) => request.service === service).flatMap(idsOf),
    )
    for (const source of await client.lookUpSources(service, [...ids], { signal }))
      stored.set(nameOf(source), source)
  }
  return stored
}

/**
 * Mails that are stored stay in their sources. New ones join the earliest source of their
 * conversation.
 */
async function placeMails(
  outgoing: Outgoing,
  stored: Stored,
  deps: CompleteDeps,
): Promise<UntitledRequest[]> {
  const { request, conversation, entry } = outgoing
  const { service, quotes } = request
  const dateOf = (id: string) => stored.get(nameOf(request, id))?.createdAt ?? ''
  const sources = (conversation?.ids ?? [])
    .filter((id) => stored.has(nameOf(request, id)))
    .toSorted((one, other) => (dateOf(one) < dateOf(other) ? -1 : 1))
  // Later requests of the conversation look up these ids only.
  if (conversation !== undefined) conversation.ids = sources
  const [earliest = request.externalId, ...others] = sources
  // The fields are those of the topmost mail, whose id is that of the request.
  const requestFor = (externalId: string, quotes: QuoteRequest[]) =>
    externalId === request.externalId ? { ...request, quotes } : { service, externalId, quotes }
  if (others.length === 0) return [requestFor(earliest, quotes)]
  if (entry.notes.every(([, reason]) => reason !== SEVERAL)) entry.notes.push(['skipped', SEVERAL])
  const sourceOf = new Map<string | undefined, string>()
  for (const externalId of sources.toReversed())
    for await (const page of pagesOf(deps.client, { service, externalId }, deps.signal))
      for (const quote of page.quotes)
        if (quote.externalId !== undefined) sourceOf.set(quote.externalId, externalId)
  const quotesIn = (id: string) =>
    quotes.filter(({ externalId }) => (sourceOf.get(externalId ?? undefined) ?? earliest) === id)
  return sources
    .map((id) => requestFor(id, quotesIn(id)))
    .filter((request) => request.quotes.length > 0)
}

const SEVERAL = 'merges of sources that are one conversation'

/**
 * A stored title stays, unless the input has one. Without a date, the earliest of quotes and stored
 * source counts.
 */
function fillFields(
  request: UntitledRequest,
  placeholderTitle: string | undefined,
  stored: Stored,
): ThreadRequest {
  const known = stored.get(nameOf(request))
  const title = request.title ?? known?.title ?? placeholderTitle ?? NO_TITLE
  const earliest = placeholderTitle === undefined ? undefined : earliestOf(request.quotes)
  const isEarlier = earliest !== undefined && !(known?.createdAt && known.createdAt < earliest)
  const createdAt = isoDate(request.createdAt) ?? (isEarlier ? earliest : undefined)
  stored.set(nameOf(request), { title, createdAt: createdAt ?? known?.createdAt })
  return {
    ...request,
    title,
    ...(createdAt !== undefined && { createdAt: request.createdAt ?? createdAt }),
  }
}

function earliestOf(quotes: readonly QuoteRequest[]): string | undefined {
  const [earliest] = quotes.flatMap(({ createdAt }) => isoDate(createdAt) ?? []).sort()
  return earliest
}

/** In UTC, so that dates compare as texts. */
function isoDate(date: string | null | undefined): string | undefined {
  return date ? parseIsoDate(date) : undefined
}
