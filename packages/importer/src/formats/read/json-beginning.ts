// Describes the beginning of a JSON file. Formats recognise their files by it.
import type { Format } from '../format.ts'
import { decodeBeginning } from './utf8-chunks.ts'

/** The shape of the first root value of a file. */
export interface JsonShape {
  /** The file's first character that is not white space. */
  root: string
  /** Whether it is on one line, as in NDJSON. Also true if the beginning has no line end. */
  isOneLine: boolean
  /**
   * The paths of the members, such as `title` and `quotes[].text`. If the root is an array, they
   * start with `[].`.
   */
  members: ReadonlySet<string>
}

/** Matches a string (a name with its colon; the last may be cut off), a bracket, or a line end. */
const TOKEN = /"((?:[^"\\]|\\(?:.|$))*)(?:"(\s*:)?|$)|[{}[\]\n]/gs

/** No format looks deeper. The paths of all levels take the square of their number. */
const DEEPEST = 20

/** Describes a file by its beginning, which may end anywhere. Never throws. */
export function jsonShape(beginning: Buffer): JsonShape {
  const text = decodeBeginning(beginning).trimStart()
  const members = new Set<string>()
  const root = text.slice(0, 1)
  if (root !== '{' && root !== '[') return { root, isOneLine: true, members }
  const open: string[] = []
  let name = ''
  let isOneLine = true
  for (const [token, string, colon] of text.matchAll(TOKEN)) {
    if (token === '\n') isOneLine &&= open.length === 0
    else if (token === '{' || token === '[')
      open.push(open.length < DEEPEST ? pathInside(open.at(-1) ?? '', name, token) : '')
    else if (token === '}' || token === ']') open.pop()
    else if (colon !== undefined) {
      name = string ?? ''
      if (open.length <= DEEPEST) members.add(`${open.at(-1) ?? ''}${name}`)
      continue
    }
    name = ''
    if (open.length === 0) break
  }
  return { root, isOneLine, members }
}

function pathInside(parent: string, name: string, bracket: string): string {
  if (bracket === '[') return `${parent}${name}[]`
  return parent === '' && name === '' ? '' : `${parent}${name}.`
}

/** Makes a function that recognises a file by the shape of its beginning. */
export function byShape(isShape: (shape: JsonShape) => boolean): Format['recognises'] {
  return (_, beginning) => isShape(jsonShape(beginning))
}
