// Completes requests with what is stored: titles, dates, and the sources as which a conversation of
// mails is stored.

import { type Client, pagesOf } from '@sluice/client'
import { parseIsoDate, type QuoteRequest, type ThreadRequest } from '@sluice/contract'
import type { Outgoing, UntitledRequest } from '../account/ledger.ts'

/** If a conversation is stored as several sources, there is a request for each. */
export interface CompleteRequest extends Outgoing {
  request: ThreadRequest
}

/** The batches in flight with their requests, whose threads may not be stored yet. */
export type InFlight = Map<Promise<void>, readonly CompleteRequest[]>

/** The stored sources, by service and externalId. */
type Stored = Map<string, { title: string; createdAt?: string | null | undefined }>

interface CompleteDeps {
  client: Pick<Client, 'lookUpSources' | 'getSource'>
  signal: AbortSignal
}

/**
 * Stands for a title that neither the input nor the store has. The API refuses it, and names the
 * field.
 */
const NO_TITLE = ''

/** Completes a batch's requests. Waits for batches in flight with requests for the same sources. */
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

/** Returns the ids of the sources to which the request may belong. */
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
 * Makes requests for the sources in which mails are stored. Stored mails stay in their sources, and
 * new mails join the earliest source of their conversation.
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
  // Later requests of the conversation look up only these ids.
  if (conversation !== undefined) conversation.ids = sources
  const [earliest = request.externalId, ...others] = sources
  // The fields come from the topmost mail, whose id is the request's id.
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
 * Adds missing fields. A stored title stays, unless the input has one. If there is no date, the
 * earliest date among the quotes and the stored source is used.
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

/** Returns a date in UTC, so that dates can be compared as texts. */
function isoDate(date: string | null | undefined): string | undefined {
  return date ? parseIsoDate(date) : undefined
}
