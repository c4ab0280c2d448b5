// The text of messages whose `text` is empty because an app wrote them as blocks or attachments.
import { asObject, asObjects, asText, type JsonObject } from '../values/record-fields.ts'

/**
 * Returns the text of Block Kit blocks, in Slack's markup. Of blocks of unknown types, their text counts.
 *
 * @see https://docs.slack.dev/reference/block-kit/blocks
 */
export function textOfBlocks(blocks: unknown): string {
  return lines(asObjects(blocks).map(textOfBlock))
}

/** Returns the text of attachments, the predecessor of blocks. A link's preview is one, too, but its message has a text. */
export function textOfAttachments(attachments: unknown): string {
  return lines(asObjects(attachments).map(textOfAttachment))
}

function textOfBlock(block: JsonObject): string {
  if (block.type === 'rich_text') return lines(asObjects(block.elements).map(textOfRichText))
  const parts = [block.text, block.title, block.alt_text, ...asObjects(block.fields), ...asObjects(block.elements)]
  return lines(parts.map(textOfObject))
}

/** A text object of Block Kit, an image by its description, or a button by its label. */
function textOfObject(part: unknown): string {
  const object = asObject(part)
  if (!object) return asText(part) ?? ''
  return asText(object.text) ?? asText(asObject(object.text)?.text) ?? asText(object.alt_text) ?? ''
}

/** A section, a quote, preformatted text, or a list of sections. Lists do not nest: they are indented. */
function textOfRichText(element: JsonObject): string {
  if (element.type !== 'rich_text_list') return textOfSection(element)
  return lines(asObjects(element.elements).map((item) => `• ${textOfSection(item)}`))
}

function textOfSection(section: JsonObject): string {
  return asObjects(section.elements).map(textOfInline).join('')
}

function textOfInline(element: JsonObject): string {
  const text = asText(element.text)
  switch (element.type) {
    case 'user':
      return `<@${element.user_id}>`
    case 'channel':
      return `<#${element.channel_id}>`
    case 'usergroup':
      return `<!subteam^${element.usergroup_id}>`
    case 'broadcast':
      return `<!${element.range}>`
    case 'emoji':
      return `:${element.name}:`
    case 'link':
      return `<${escapeText(String(element.url))}${text ? `|${escapeText(text)}` : ''}>`
    default:
      return escapeText(typeof element.text === 'string' ? element.text : (asText(element.fallback) ?? ''))
  }
}

function textOfAttachment(attachment: JsonObject): string {
  const fields = asObjects(attachment.fields).map((field) =>
    lines([textOfObject(field.title), textOfObject(field.value)]),
  )
  const own = [attachment.pretext, attachment.title, attachment.text].map((part) => asText(part) ?? '')
  const text = lines([...own, ...fields, textOfBlocks(attachment.blocks)])
  return text || (asText(attachment.fallback) ?? '')
}

/** Rich text contains characters as they are; all other texts are in Slack's markup. */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function lines(parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== '').join('\n')
}
