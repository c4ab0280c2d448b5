/** What serves every server best is some 200 ids a query, side by side. */
const IDS_A_QUERY = 200
const QUERIES_AT_ONCE = 8

/** Reads documents by their ids, in whatever order; `find` gets some of the ids at a time, and options that spare a second round trip. */
export async function findByIds<Document>(
  ids: readonly string[],
  find: (some: string[], options: { batchSize: number }) => Promise<Document[]>,
): Promise<Document[]> {
  const found: Document[] = []
  let next = 0
  async function ask(): Promise<void> {
    while (next < ids.length) {
      const some = ids.slice(next, next + IDS_A_QUERY)
      next += IDS_A_QUERY
      for (const document of await find(some, { batchSize: IDS_A_QUERY + 1 })) found.push(document)
    }
  }
  await Promise.all(Array.from({ length: QUERIES_AT_ONCE }, ask))
  return found
}
