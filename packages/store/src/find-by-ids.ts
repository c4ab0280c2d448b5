/** What serves every server best is some 200 ids a query, side by side. */
const IDS_A_QUERY = 200

/** Reads documents by their ids, in whatever order; `find` gets some of the ids at a time, and options that spare a second round trip. */
export async function findByIds<Document>(
  ids: readonly string[],
  find: (some: string[], options: { batchSize: number }) => Promise<Document[]>,
): Promise<Document[]> {
  const queries: Promise<Document[]>[] = []
  for (let start = 0; start < ids.length; start += IDS_A_QUERY) {
    queries.push(find(ids.slice(start, start + IDS_A_QUERY), { batchSize: IDS_A_QUERY + 1 }))
  }
  return (await Promise.all(queries)).flat()
}
