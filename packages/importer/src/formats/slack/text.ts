// Texts as Slack shows them: of its markup (mentions, links, dates, emoji), of blocks, and of attachments of apps.
import emojiNames from 'emoji-name-map/lib/datasource.json' with { type: 'json' }
import { asObject, asObjects, asText, type JsonObject } from '../values/record-fields.ts'
import type { Directory } from './directory.ts'

/** In texts, Slack writes `<`, `>` and `&` as entities, so brackets always enclose markup. */
const MARKUP = /<([^<>]*)>|&(amp|lt|gt);|:([a-z0-9_+'-]+):(?::skin-tone-([2-6]):)?/g
const EMOJI: Readonly<Record<string, string>> = emojiNames
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>' }
/** The characters of `:skin-tone-2:` to `:skin-tone-6:`. */
const SKIN_TONES = ['🏻', '🏼', '🏽', '🏾', '🏿']

/** Decodes Slack's markup. @see https://docs.slack.dev/messaging/formatting-message-text */
export function decodeText(text: string, directory: Directory): string {
  if (!/[<&:]/.test(text)) return text
  return text.replace(MARKUP, (markup, inside?: string, entity?: string, emoji?: string, tone?: string) => {
    if (inside !== undefined) return decodeBrackets(inside, directory)
    return entity ? (ENTITIES[entity] ?? markup) : decodeEmoji(emoji ?? '', tone, markup)
  })
}

/** Returns the character of an emoji. A custom emoji has none and stays as it is. */
function decodeEmoji(name: string, tone: string | undefined, markup: string): string {
  const emoji = Object.hasOwn(EMOJI, name) ? EMOJI[name] : undefined
  return emoji ? emoji + (tone ? (SKIN_TONES[Number(tone) - 2] ?? '') : '') : markup
}

function decodeBrackets(inside: string, directory: Directory): string {
  const bar = inside.indexOf('|')
  const target = bar === -1 ? inside : inside.slice(0, bar)
  const label = bar === -1 ? '' : decodeEntities(inside.slice(bar + 1))
  const id = target.slice(1)
  if (target.startsWith('@')) return `@${directory.users.get(id) ?? (label || id)}`
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

/** If the user typed no `https://` or `mailto:`, Slack adds it, and what the user typed becomes the label. */
function decodeLink(address: string, label: string): string {
  const plain = address.replace(/^(mailto|tel):/, '')
  if (label === '' || label === plain) return plain
  return label === address.replace(/^[a-z]+:\/\//, '') ? label : `${label} (${address})`
}

function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt);/g, (_, name: string) => ENTITIES[name] ?? '') : text
}

/** Returns the text of Block Kit blocks, in Slack's markup. @see https://docs.slack.dev/reference/block-kit/blocks */
export function textOfBlocks(blocks: unknown): string {
  return lines(asObjects(blocks).map(textOfBlock))
}

/** Returns the text of attachments, the predecessor of blocks. */
export function textOfAttachments(attachments: unknown): string {
  return lines(asObjects(attachments).map(textOfAttachment))
}

function textOfBlock(block: JsonObject): string {
  if (block.type === 'rich_text') return lines(asObjects(block.elements).map(textOfRichText))
  const parts = [block.text, block.title, block.alt_text, ...asObjects(block.fields), ...asObjects(block.elements)]
  return lines(parts.map(textOfObject))
}

function textOfObject(part: unknown): string {
  const object = asObject(part)
  if (!object) return asText(part) ?? ''
  return asText(object.text) ?? asText(asObject(object.text)?.text) ?? asText(object.alt_text) ?? ''
}

/** A section, a quote, preformatted text, or a list of sections. Slack indents lists instead of nesting them. */
function textOfRichText(element: JsonObject): string {
  if (element.type !== 'rich_text_list') return textOfSection(element)
  return lines(asObjects(element.elements).map((item) => `• ${textOfSection(item)}`))
}

function textOfSection(section: JsonObject): string {
  return asObjects(section.elements).map(textOfInline).join('')
}

/** The elements of rich text that have markup of their own, by their types. */
const INLINE: Readonly<Record<string, (element: JsonObject) => string>> = {
  user: ({ user_id }) => `<@${user_id}>`,
  channel: ({ channel_id }) => `<#${channel_id}>`,
  usergroup: ({ usergroup_id }) => `<!subteam^${usergroup_id}>`,
  broadcast: ({ range }) => `<!${range}>`,
  emoji: ({ name }) => `:${name}:`,
  link: ({ url, text }) => `<${escapeText(String(url))}${asText(text) ? `|${escapeText(String(text))}` : ''}>`,
}

function textOfInline(element: JsonObject): string {
  const inline = typeof element.type === 'string' && Object.hasOwn(INLINE, element.type) && INLINE[element.type]
  if (inline) return inline(element)
  return escapeText(typeof element.text === 'string' ? element.text : (asText(element.fallback) ?? ''))
}

function textOfAttachment(attachment: JsonObject): string {
  const fields = asObjects(attachment.fields).map((field) =>
    lines([textOfObject(field.title), textOfObject(field.value)]),
  )
  const own = [attachment.pretext, attachment.title, attachment.text].map((part) => asText(part) ?? '')
  const text = lines([...own, ...fields, textOfBlocks(attachment.blocks)])
  return text || (asText(attachment.fallback) ?? '')
}

/** Rich text has its characters as they are. It is escaped, so that all texts are in Slack's markup. */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function lines(parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== '').join('\n')
}
