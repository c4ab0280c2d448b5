// Reads a stored source page by page.
import type { Client, SourceName } from './client.ts'
import type { SourcePage } from './contract.generated.ts'

/** The API returns at most this number of quotes in one page. */
const MOST_OF_PAGE = 1_000

/** Yields the pages of a stored source, or nothing if it is not stored. */
export async function* pagesOf(
  client: Pick<Client, 'getSource'>,
  name: SourceName,
  signal?: AbortSignal,
): AsyncGenerator<SourcePage> {
  let page: SourcePage | undefined
  do {
    page = await client.getSource(name, { limit: MOST_OF_PAGE, after: page?.next, signal })
    if (page !== undefined) yield page
  } while (page?.next !== undefined)
}
