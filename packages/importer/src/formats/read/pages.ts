// Recognises answers of APIs that are pages, and warns if the input lacks other pages of them.
import { isRecord } from '@sluice/contract'
import { formatNumber } from '@sluice/terminal'
import type { AnswerPage, Found, Noted, Place } from '../format.ts'
import { asId, asNumber, asText } from '../values/record-fields.ts'

/** Names of members that have an address, a number or a token of the next page. */
const NEXT = /^next(_?page)?(_?(token|cursor|link|url))?$/i
/** Names of members that say whether there is one. Zendesk names one even if there is none. */
const HAS_MORE = /^has_?(more|next_?page)$/i
const IS_LAST = /^(is_?last|end_of_stream)$/i
const TOTAL = /^(total(_?(count|results))?|count)$/i

/** Names of members that have the address of a page. Without its query, it names the list. */
const ADDRESS = /^(next|prev(ious)?|self)(_?page)?(_?(link|url))?$/i

/** For example, `hasNextPage` in `data.repository.issues.pageInfo` is inside four objects. */
const DEEPEST = 4

/** Returns the members of an answer, and of objects in it such as `meta`, but not of lists. */
function membersOf(value: unknown, depth = DEEPEST): [name: string, value: unknown][] {
  return Object.entries(isRecord(value) ? value : {}).flatMap(([name, one]) =>
    isRecord(one) && depth > 0 ? membersOf(one, depth - 1) : [[name, one]],
  )
}

/** Returns a page if the answer says whether there are others. */
export function pageOf(
  answer: unknown,
  list: string,
  items: number,
  place: Place,
): AnswerPage | undefined {
  const members = membersOf(answer)
  const valuesOf = (names: RegExp) =>
    members.flatMap(([name, value]) => (names.test(name) ? [value] : []))
  const total = valuesOf(TOTAL)
    .map(asNumber)
    .find((one) => one !== undefined)
  const more = [...valuesOf(HAS_MORE), ...valuesOf(IS_LAST).map((isLast) => isLast === false)]
  const next = valuesOf(NEXT)
  if (more.length + next.length === 0 && total === undefined) return undefined
  const hasMore =
    more.length > 0 ? more.includes(true) : next.some((one) => asId(one) !== undefined)
  // Pages with a total are of one list if they have the same total.
  const [address = ''] = total === undefined ? valuesOf(ADDRESS).flatMap(pathOf) : []
  return { kind: 'page', list: `${address}${list}`, items, total, hasMore, place }
}

function pathOf(address: unknown): string[] {
  return /^https?:[^?#]+/.exec(asText(address) ?? '') ?? []
}

/** What the pages of a list have together. `total` is only there if one page has fewer items. */
type Pages = Omit<AnswerPage, 'hasMore'> & { more: number; last: number }

/** Leaves out pages. At the end, warns if the input lacks some. */
export async function* withoutPages(
  found: AsyncIterable<readonly Found[]>,
): AsyncGenerator<readonly Exclude<Found, AnswerPage>[]> {
  const lists = new Map<string, Pages>()
  for await (const list of found)
    yield list.filter((one) => {
      if (one.kind === 'page') addPage(lists, one)
      return one.kind !== 'page'
    })
  yield [...lists.values()].flatMap(lackingIn)
}

/** About 10 MB. No input has pages of so many lists. */
const MOST_LISTS = 50_000

function addPage(lists: Map<string, Pages>, { hasMore, ...page }: AnswerPage): void {
  const total = page.total !== undefined && page.total > page.items ? page.total : undefined
  // Answers with another total are of another list.
  const key = `${page.list} ${total}`
  const known = lists.get(key) ?? { ...page, total, items: 0, more: 0, last: 0 }
  known.items += page.items
  known[hasMore ? 'more' : 'last'] += 1
  if (lists.size < MOST_LISTS) lists.set(key, known)
}

/** Without a total, the input is taken as complete if it has a last page. */
function lackingIn({ list, items, total, more, last, isGuess, place }: Pages): Noted[] {
  const isWhole = total === undefined ? more === 0 || last > 0 : items >= total
  if (isWhole) return []
  const name = /(issues|tickets|comments)$/.exec(list)?.[0] ?? 'records'
  const number = total === undefined ? `the first ${formatNumber(items)}` : formatNumber(items)
  const all = total === undefined ? '' : ` of ${formatNumber(total)}`
  const only = `${isGuess ? 'perhaps ' : ''}only ${number}${all} ${name} of an answer are in the input`
  const reason = `${only}: save all of its pages, and import them together`
  return [{ kind: 'warning', reason, place }]
}
