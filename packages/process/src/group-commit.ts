// Gathers items into groups that are processed together.

/** Returns the indexes of the gathered items that form the next group, at least one. */
export type ChooseGroup<Item> = (gathered: readonly Item[]) => readonly number[]

/**
 * Runs items in groups without a timer (group commit, DeWitt et al. 1984). A single item runs
 * immediately. A burst runs in large groups, which `choose` may bound. `run` returns one result for
 * each item, in the order of the items, or throws for all of them.
 */
export function createGroupCommit<Item, Result>(
  run: (items: Item[]) => Promise<readonly Result[]>,
  choose: ChooseGroup<Item> = (gathered) => [...gathered.keys()],
): (item: Item) => Promise<Result> {
  let gathered: (PromiseWithResolvers<Result> & { item: Item })[] = []
  let running = false

  async function runAll(): Promise<void> {
    while (gathered.length > 0) {
      const chosen = new Set(choose(gathered.map(({ item }) => item)))
      const group = gathered.filter((_, index) => chosen.has(index))
      gathered = gathered.filter((_, index) => !chosen.has(index))
      try {
        const results = await run(group.map(({ item }) => item))
        for (const [at, { resolve, reject }] of group.entries()) {
          const result = results[at]
          if (result === undefined) reject(new Error('a group commit has no result for an item'))
          else resolve(result)
        }
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    running = false
  }

  return (item) => {
    const next = { item, ...Promise.withResolvers<Result>() }
    gathered.push(next)
    if (!running) {
      running = true
      // Items that come in the same turn of the event loop are part of the first run.
      setImmediate(runAll)
    }
    return next.promise
  }
}
