// What a character is to the word rules of UAX #29: one bit for each kind that words are made of.
const LETTER = 1
const DIGIT = 2
const UNDERSCORE = 4
// And between which of those kinds it joins two words into one (WB6, WB7, WB11, WB12), for all that is none of them.
const JOINS_LETTERS = LETTER
const JOINS_DIGITS = DIGIT

const ASCII = 128
const KINDS = new Uint8Array(ASCII)
const JOINS = new Uint8Array(ASCII)

fill(KINDS, LETTER, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
fill(KINDS, DIGIT, '0123456789')
fill(KINDS, UNDERSCORE, '_')
fill(JOINS, JOINS_LETTERS, ':')
fill(JOINS, JOINS_DIGITS, ',;')
fill(JOINS, JOINS_LETTERS | JOINS_DIGITS, ".'")

/** How far the text before a character has got with a word. */
interface State {
  /** The kind of the word's last character; 0 outside of words. */
  previous: number
  /** The word so far is one underscore, which the segmenter takes by itself for punctuation, and two for a word. */
  loneUnderscore: boolean
  /** The kinds of character that, coming next, would go on with the word although something stands between. */
  joined: number
}

/**
 * For each state and character where the next state's row begins and, in the lowest bit, whether a word begins there: one look-up a character instead of
 * the rules.
 */
const NEXT = makeTable()

/**
 * Counts the words of a text as `Intl.Segmenter('en', { granularity: 'word' })` does, over ten times as fast;
 * undefined where the text has a character beyond ASCII, for which only the segmenter knows the rules.
 */
export function countAsciiWords(text: string): number | undefined {
  let words = 0
  let row = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= ASCII) return undefined
    const next = NEXT[row + code] ?? 0
    words += next & 1
    row = next >> 1
  }
  return words
}

function makeTable(): Uint16Array {
  const states: State[] = [{ previous: 0, loneUnderscore: false, joined: 0 }]
  const table: number[] = []
  // States are found as they are reached; there are less than twenty.
  for (const state of states) {
    for (let code = 0; code < ASCII; code++) {
      const { next, begins } = follow(state, code)
      let at = states.findIndex((other) => isSame(other, next))
      if (at === -1) at = states.push(next) - 1
      table.push((at * ASCII * 2) | Number(begins))
    }
  }
  return Uint16Array.from(table)
}

function follow({ previous, loneUnderscore, joined }: State, code: number): { next: State; begins: boolean } {
  const kind = KINDS[code] ?? 0
  const isApart = joined !== 0 && (kind & joined) === 0
  const before = isApart ? 0 : previous
  if (kind === 0) {
    const joins = joined === 0 ? (JOINS[code] ?? 0) & before : 0
    const next =
      joins === 0
        ? { previous: 0, loneUnderscore: false, joined: 0 }
        : { previous: before, loneUnderscore, joined: joins }
    return { next, begins: false }
  }
  if (before === 0) {
    const isLone = kind === UNDERSCORE
    return { next: { previous: kind, loneUnderscore: isLone, joined: 0 }, begins: !isLone }
  }
  return { next: { previous: kind, loneUnderscore: false, joined: 0 }, begins: loneUnderscore }
}

function isSame(one: State, other: State): boolean {
  return one.previous === other.previous && one.loneUnderscore === other.loneUnderscore && one.joined === other.joined
}

function fill(table: Uint8Array, value: number, characters: string): void {
  for (const character of characters) table[character.charCodeAt(0)] = value
}
