// Long lists of ids. In a file of its own, because the API reads by it and must not reach the writes.

/** A longer list makes some servers slower for each id, which an unchanged import feels most. */
const IDS_PER_QUERY = 100
const QUERIES_AT_ONCE = 8

/** Reads documents by their ids in queries of at most `IDS_PER_QUERY`, of which `atOnce` run at the same time. */
export async function inQueries<Found>(
  ids: readonly string[],
  find: (some: string[]) => Promise<Found[]>,
  atOnce = QUERIES_AT_ONCE,
): Promise<Found[]> {
  const found: Found[] = []
  let next = 0
  async function query(): Promise<void> {
    while (next < ids.length) {
      const some = ids.slice(next, next + IDS_PER_QUERY)
      next += IDS_PER_QUERY
      for (const document of await find(some)) found.push(document)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, Math.ceil(ids.length / IDS_PER_QUERY)) }, query))
  return found
}
