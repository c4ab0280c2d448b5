/** What is under way, by id. */
export interface Pending {
  add(id: string): void
  done(id: string): void
  /** Resolves when nothing is under way. */
  none(): Promise<void>
}

/** Keeps track of what is under way. */
export function createPending(): Pending {
  const ids = new Set<string>()
  let emptied = Promise.withResolvers<void>()
  return {
    add: (id) => void ids.add(id),
    done(id) {
      ids.delete(id)
      if (ids.size > 0) return
      emptied.resolve()
      emptied = Promise.withResolvers()
    },
    async none() {
      while (ids.size > 0) await emptied.promise
    },
  }
}
