// Finds the known name that an unknown name most likely stands for.

/** A longer name is not a typing error, and comparing it would be slow. */
const LONGEST_NAME = 40

/**
 * Returns the known name of which `name` is an alias (see `namesOf`). Otherwise returns the nearest
 * known name within two edits, or within one edit if it has at most four characters. Ignores case,
 * underscores, dashes, dots and spaces.
 */
export function nearestName(
  name: string,
  known: readonly string[],
  aliases: Readonly<Record<string, string>>,
): string | undefined {
  if (name.length > LONGEST_NAME) return undefined
  const plain = plainForm(name)
  if (Object.hasOwn(aliases, plain)) return aliases[plain]
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const edits = editDistance(plain, plainForm(candidate))
    // Two edits can turn most words of three or four letters into each other.
    if (edits < fewest && edits <= (candidate.length <= 4 ? 1 : 2)) {
      nearest = candidate
      fewest = edits
    }
  }
  return nearest
}

/** Makes aliases of a known name, in the form in which `nearestName` looks them up. */
export function namesOf<Field extends string>(
  field: Field,
  aliases: readonly string[],
): Record<string, Field> {
  return Object.fromEntries(aliases.map((alias) => [alias, field]))
}

function plainForm(name: string): string {
  return name.toLowerCase().replaceAll(/[-_. ]/g, '')
}

/**
 * Counts the insertions, deletions, replacements and swaps of neighbours between two texts (optimal
 * string alignment).
 */
export function editDistance(one: string, other: string): number {
  let before: number[] = []
  let above = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const differs = one[i - 1] === other[j - 1] ? 0 : 1
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const edits = Math.min(
        (above[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (above[j - 1] ?? 0) + differs,
      )
      row.push(isSwap ? Math.min(edits, (before[j - 2] ?? 0) + 1) : edits)
    }
    before = above
    above = row
  }
  return above[other.length] ?? 0
}
