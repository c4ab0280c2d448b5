// Gathers calls into groups that share a round trip.

/** Returns the indexes of the gathered items that form the next group, at least one. */
export type ChooseGroup<Item> = (gathered: readonly Item[]) => readonly number[]

interface Gathered<Item, Result> extends PromiseWithResolvers<Result> {
  item: Item
}

/**
 * Runs items in groups without a timer: a single item runs at once, and a burst runs in large groups, which `choose`
 * may bound. `run` returns one result for each item, in their order. If it throws, each of its items fails with that
 * error. (Group commit: DeWitt et al. 1984, "Implementation techniques for main memory database systems".)
 */
export function createGroupCommit<Item, Result>(
  run: (items: Item[]) => Promise<readonly Result[]>,
  choose: ChooseGroup<Item> = (gathered) => [...gathered.keys()],
): (item: Item) => Promise<Result> {
  let gathered: Gathered<Item, Result>[] = []
  let running = false

  async function runAll(): Promise<void> {
    while (gathered.length > 0) {
      const places = new Set(choose(gathered.map(({ item }) => item)))
      const group = gathered.filter((_, place) => places.has(place))
      gathered = gathered.filter((_, place) => !places.has(place))
      try {
        const results = await run(group.map(({ item }) => item))
        for (const [at, { resolve, reject }] of group.entries()) {
          const result = results[at]
          if (result === undefined) reject(new Error('a group commit gave no result for an item'))
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
      // Items of the same turn of the event loop join the first run.
      setImmediate(runAll)
    }
    return next.promise
  }
}
