// Reads the words of a document of Jira Cloud, in the Atlassian Document Format: a tree of nodes.
import { DAY_CHARACTERS, isoDateOf } from '../values/iso-date.ts'
import { asArray, asNumber, asObject, asObjects, asText, asTexts } from '../values/record-fields.ts'

/** Nodes that are part of a line. Any other node ends its line. */
const INLINE = new Set(
  'text mention emoji inlineCard status date mediaInline placeholder inlineExtension'.split(' '),
)
const LINE_END = '\n'

/** Matches a mention of a person in Jira's markup. Jira Server names people by their logins. */
const MENTION = /\[~(?:accountid:)?([^\]\s]{1,128})\]/g

/** Replaces ids of people by their names, as far as they are known. */
export function withNames(words: string, names: ReadonlyMap<string, string>): string {
  return words.replace(MENTION, (markup, id) => (names.has(id) ? `@${names.get(id)}` : markup))
}

/** Returns a document's words, and the names of its files. Returns Jira's markup unchanged. */
export function wordsIn(document: unknown): { text: string; attachments: string[] } {
  if (typeof document === 'string') return { text: document, attachments: [] }
  const parts: string[] = []
  const attachments: string[] = []
  // Not recursive, because a document may be nested deeper than the stack allows.
  const open: unknown[] = [document]
  while (open.length > 0) {
    const node = open.pop()
    if (node === LINE_END) {
      if (parts.at(-1) !== LINE_END) parts.push(LINE_END)
      continue
    }
    const { type, attrs, content, text, marks } = asObject(node) ?? {}
    const { alt, timestamp, ...named } = asObject(attrs) ?? {}
    const day = isoDateOf(asNumber(timestamp))?.slice(0, DAY_CHARACTERS)
    const [word] = asTexts([day, named.text, named.shortName, named.url, named.title])
    const link = asText(
      asObject(asObjects(marks).find((mark) => mark.type === 'link')?.attrs)?.href,
    )
    if (type === 'media' || type === 'mediaInline') attachments.push(asText(alt) ?? 'media')
    else if (type === 'listItem') parts.push('- ')
    else if (typeof text === 'string')
      parts.push(link && link !== text ? `${text} (${link})` : text)
    else if (word !== undefined && type !== 'placeholder')
      parts.push(word, ...(content ? [LINE_END] : []))
    if (!INLINE.has(String(type))) open.push(LINE_END)
    for (const child of asArray(content).toReversed()) open.push(child)
  }
  return { text: parts.join('').trim(), attachments }
}
