// Converts texts to the form in which Slack shows them. The texts come from Slack's markup
// (mentions, links, dates, emoji), from blocks, and from attachments of apps.
import emojiNames from 'emoji-name-map/lib/datasource.json' with { type: 'json' }
import {
  asArray,
  asObject,
  asObjects,
  asText,
  asWord,
  type JsonObject,
} from '../values/record-fields.ts'
import type { Directory } from './directory.ts'
import moreNames from './emoji-names.json' with { type: 'json' }

/**
 * Matches markup. Slack writes `<`, `>` and `&` in texts as entities, so brackets always enclose
 * markup. Code contains no emoji.
 */
const MARKUP =
  /(```[\s\S]+?```|`[^`\n]+`)|<([^<>]*)>|&(amp|lt|gt|colon);|:([a-z0-9_+'-]+):(?::skin-tone-([2-6]):)?/g
const MARKUP_IN_CODE = /<([^<>]*)>|&(amp|lt|gt|colon);/g
/** Matches a digit, or a letter of a script that puts spaces between words. */
const LETTER = /[\p{Nd}\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]/u
/** All names that Slack knows: the library's, and newer ones and aliases (emojibase-data). */
const EMOJI = new Map([
  ...Object.entries(emojiNames),
  ...Object.entries(moreNames).flatMap(([emoji, names]) =>
    names.split(' ').map((name): [string, string] => [name, emoji]),
  ),
])
/** `&colon;` is our own: a colon in rich text does not begin an emoji. */
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', colon: ':' }
/** The characters for `:skin-tone-2:` to `:skin-tone-6:`. */
const SKIN_TONES = ['🏻', '🏼', '🏽', '🏾', '🏿']

/** Decodes Slack's markup. @see https://docs.slack.dev/messaging/formatting-message-text */
export function decodeSlackText(text: string, directory: Directory): string {
  if (!/[<&:]/.test(text)) return text
  const toText = (
    markup: string,
    code: string | undefined,
    inside: string | undefined,
    entity: string | undefined,
    emoji: string | undefined,
    tone: string | undefined,
    at: number,
  ) => {
    if (code !== undefined) return decodeCode(code, directory)
    if (inside !== undefined) return decodeBrackets(inside, directory)
    if (entity !== undefined) return ENTITIES[entity] ?? markup
    return isWithinWord(text, at, markup.length) ? markup : decodeEmoji(emoji ?? '', tone, markup)
  }
  return text.replace(MARKUP, toText)
}

function decodeCode(code: string, directory: Directory): string {
  return code.replace(MARKUP_IN_CODE, (markup, inside?: string, entity = '') =>
    inside === undefined ? (ENTITIES[entity] ?? markup) : decodeBrackets(inside, directory),
  )
}

/** With letters or digits on both sides, as in `urn:book:12`, Slack shows no emoji. */
function isWithinWord(text: string, at: number, length: number): boolean {
  return LETTER.test(text.charAt(at - 1)) && LETTER.test(text.charAt(at + length))
}

/** Returns the character of an emoji. A custom emoji has none, so its markup is returned. */
function decodeEmoji(name: string, tone: unknown, markup: string): string {
  const emoji = EMOJI.get(name)
  return emoji ? emoji + (tone ? (SKIN_TONES[Number(tone) - 2] ?? '') : '') : markup
}

function decodeBrackets(inside: string, directory: Directory): string {
  const bar = inside.indexOf('|')
  const target = bar === -1 ? inside : inside.slice(0, bar)
  const label = bar === -1 ? '' : decodeEntities(inside.slice(bar + 1))
  const id = target.slice(1)
  if (target.startsWith('@')) {
    const name = directory.users.get(id) ?? label
    if (name === '') directory.unnamed += 1
    return `@${name || id}`
  }
  if (target.startsWith('#')) return `#${(label || directory.conversations.get(id)?.name) ?? id}`
  if (target.startsWith('!')) return decodeCommand(id, label)
  return decodeLink(decodeEntities(target), label)
}

/** Decodes `<!here>`, `<!subteam^S1|@team>` and `<!date^1700000000^{date}|yesterday>`. */
function decodeCommand(command: string, label: string): string {
  if (label) return label
  const [name, argument] = command.split('^')
  return name === 'subteam' && argument ? `@${argument}` : `@${name}`
}

/** If the user typed no `https://` or `mailto:`, Slack adds it, and the label is what was typed. */
function decodeLink(address: string, label: string): string {
  const plain = address.replace(/^(mailto|tel):/, '')
  if (label === '' || label === plain) return plain
  return label === address.replace(/^[a-z]+:\/\//, '') ? label : `${label} (${address})`
}

function decodeEntities(text: string): string {
  return text.includes('&')
    ? text.replace(/&(amp|lt|gt|colon);/g, (_, name: string) => ENTITIES[name] ?? '')
    : text
}

/**
 * Returns blocks and, after each, the blocks in it: the content of a container, the cards of a
 * carousel, the tasks of a plan.
 */
export function flatBlocks(blocks: unknown): readonly JsonObject[] {
  return asObjects(blocks).flatMap((block) =>
    block.type === 'carousel'
      ? asObjects(block.elements)
      : [block, ...asObjects(block.child_blocks), ...asObjects(block.tasks)],
  )
}

/**
 * Returns the text of a block of Block Kit, in Slack's markup. @see
 * https://docs.slack.dev/reference/block-kit/blocks
 */
export function textOfBlock(block: JsonObject): string {
  if (block.type === 'rich_text') return lines(asObjects(block.elements).map(textOfRichText))
  const { text, subtitle, label, description, body, details, output, alt_text, accessory } = block
  const title = block.rich_text_title ?? block.title
  const own = [text, title, subtitle, label, description, body, details, output, alt_text]
  const parts = [
    ...own,
    ...asObjects(block.fields),
    ...asObjects(block.elements),
    ...asObjects(block.actions),
  ]
  const rows = asArray(block.rows).map((row) => asArray(row).map(textOfObject).join(' | '))
  return lines([...[...parts, accessory].map(textOfObject), ...rows])
}

function textOfObject(part: unknown): string {
  const object = asObject(part)
  if (!object) return asText(part) ?? ''
  if (object.type === 'rich_text') return textOfBlock(object)
  return asText(object.text) ?? asText(asObject(object.text)?.text) ?? asText(object.alt_text) ?? ''
}

/** A section, a quote, preformatted text, or a list, which Slack indents instead of nesting. */
function textOfRichText(element: JsonObject): string {
  if (element.type !== 'rich_text_list') return textOfSection(element)
  return lines(asObjects(element.elements).map((item) => `• ${textOfSection(item)}`))
}

function textOfSection(section: JsonObject): string {
  return asObjects(section.elements).map(textOfInline).join('')
}

/** The elements of rich text that have special markup, by type. */
const INLINE: Readonly<Record<string, (element: JsonObject) => string>> = {
  user: ({ user_id }) => `<@${user_id}>`,
  channel: ({ channel_id }) => `<#${channel_id}>`,
  usergroup: ({ usergroup_id }) => `<!subteam^${usergroup_id}>`,
  broadcast: ({ range }) => `<!${range}>`,
  emoji: ({ name, skin_tone }) => decodeEmoji(String(name), skin_tone, `:${name}:`),
  link: ({ url, text }) =>
    `<${escapeText(String(url))}${asText(text) ? `|${escapeText(String(text))}` : ''}>`,
}

function textOfInline(element: JsonObject): string {
  const inline =
    typeof element.type === 'string' && Object.hasOwn(INLINE, element.type) && INLINE[element.type]
  if (inline) return inline(element)
  return escapeText(
    typeof element.text === 'string'
      ? element.text
      : (asText(element.fallback) ?? asText(element.value) ?? ''),
  )
}

/** Attachments are the predecessors of blocks. A shared message is also one. */
export function textOfAttachment(attachment: JsonObject): string {
  const fields = asObjects(attachment.fields).map((field) =>
    lines([textOfObject(field.title), asWord(field.value) ?? textOfObject(field.value)]),
  )
  const isShared = attachment.is_share === true || attachment.is_msg_unfurl === true
  const { pretext, author_name, title, text, footer, fallback } = attachment
  const own = [pretext, isShared ? '' : author_name, title, text].map((part) => asText(part) ?? '')
  const blocks = flatBlocks(attachment.blocks).map(textOfBlock)
  const last = isShared ? '' : (asText(footer) ?? '')
  return (
    lines([...own, ...fields, ...blocks, last]) ||
    lines(textsOfShared(attachment)) ||
    (asText(fallback) ?? '')
  )
}

/** Returns the texts of a shared message from its blocks, if it has no text. */
function textsOfShared({ message_blocks }: JsonObject): string[] {
  return asObjects(message_blocks)
    .flatMap(({ message }) => flatBlocks(asObject(message)?.blocks))
    .map(textOfBlock)
}

/** Escapes rich text, which has plain characters, so that all texts are in Slack's markup. */
function escapeText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(':', '&colon;')
}

/** Joins the parts that are not blank, each on a separate line. */
export function lines(parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== '').join('\n')
}
