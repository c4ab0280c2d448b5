// Reads what a Slack message shows: its text, its blocks, and its attachments, such as shared
// messages.
import { htmlToText } from '../values/html-text.ts'
import { asObject, asObjects, asText, type JsonObject } from '../values/record-fields.ts'
import type { Directory } from './directory.ts'
import { decodeSlackText, flatBlocks, lines, textOfAttachment, textOfBlock } from './text.ts'

/** What Slack writes for a content that is elsewhere. */
const PLACEHOLDER =
  /^(This content can['’]t be displayed\.|This message contains interactive elements\.|\[no preview available\])$/

/** Returns words, files, and the reasons by which content without words is counted. */
export function slackContent(message: JsonObject, directory: Directory) {
  const decode = (part: string) => (PLACEHOLDER.test(part) ? '' : decodeSlackText(part, directory))
  const text = decode(asText(message.text) ?? '')
  const blocks = blocksOf(message, text)
  const isPlain =
    blocks.length === 0 && [message.attachments, message.files, message.file].every((more) => !more)
  if (isPlain) return { text, files: [], leftOut: [] }
  const { attachments, previews } = attachmentsOf(message, text)
  const files = [message, ...attachments].flatMap((each) => asObjects(each.files ?? [each.file]))
  const decoded = [...blocks.map(textOfBlock), ...attachments.map(textOfAttachment)].map(decode)
  const more = [...decoded, ...files.map(wordsOfFile)]
  const leftOut = [
    ...previews.map(() => 'previews of links'),
    ...attachments
      .filter(({ image_url, thumb_url }) => image_url ?? thumb_url)
      .map(() => 'images of attachments'),
    ...blocks
      .filter((block) => block.type !== 'divider' && textOfBlock(block) === '')
      .map(() => 'blocks without words'),
    ...files
      .filter(({ name, title }) => !asText(name) && !asText(title))
      .map(() => 'files that were deleted or hidden'),
    ...files
      .filter(isCut)
      .map(() => 'ends of snippets and other files whose words the export cuts'),
  ]
  return { text: withoutRepeats(text, more), files, leftOut }
}

/**
 * Returns what a person wrote or said in a file: a mail to the channel, a snippet, a post, the
 * words of a clip, or the description of an image. It is not in Slack's markup.
 */
function wordsOfFile(file: JsonObject): string {
  const { mode, subject, plain_text, preview_plain_text, preview, alt_txt } = file
  const html = () => htmlToText(asText(preview) ?? '')
  const own =
    mode === 'email'
      ? [subject, asText(plain_text) ?? asText(preview_plain_text) ?? html()]
      : [mode === 'snippet' && preview, isPost(file) && html()]
  return lines([...own, clipOf(file)?.content, alt_txt].map((part) => asText(part) ?? ''))
}

function clipOf({ transcription }: JsonObject): JsonObject | undefined {
  return asObject(asObject(transcription)?.preview)
}

function isPost({ mode }: JsonObject): boolean {
  return mode === 'space' || mode === 'post'
}

function isCut(file: JsonObject): boolean {
  const isPreview = file.mode === 'snippet' || isPost(file)
  return (isPreview && file.preview_is_truncated === true) || clipOf(file)?.has_more === true
}

/**
 * Returns the blocks that say more than the text. In a member's message, Slack repeats the text as
 * rich text. Apps choose text and blocks independently.
 */
function blocksOf(message: JsonObject, text: string): readonly JsonObject[] {
  const isByApp = message.subtype === 'bot_message' || message.bot_id !== undefined
  return flatBlocks(message.blocks).filter(
    ({ type }) => text === '' || isByApp || type !== 'rich_text',
  )
}

/**
 * Separates attachments from the previews that Slack adds for links in the text. A shared message
 * has an address, too, but is no preview.
 */
function attachmentsOf(message: JsonObject, text: string) {
  const all = asObjects(message.attachments)
  const isPreview = ({ is_share, is_msg_unfurl, from_url, original_url }: JsonObject) =>
    text !== '' &&
    is_share !== true &&
    is_msg_unfurl !== true &&
    (from_url ?? original_url) !== undefined
  return { attachments: all.filter((one) => !isPreview(one)), previews: all.filter(isPreview) }
}

/**
 * Returns a text and its blocks without what they repeat: apps repeat all or some of the words of
 * their blocks as the text.
 */
function withoutRepeats(text: string, more: readonly string[]): string {
  const known = words(text)
  const parts = more.filter((part) => !known.includes(words(part)))
  const isRepeated = parts.some((part) => words(part).startsWith(known))
  return lines([isRepeated ? '' : text, ...parts])
}

/** Words between spaces, without marks for bold and the like: `includes` finds whole words. */
function words(text: string): string {
  return ` ${text
    .replace(/[*_~`•]/g, '')
    .replace(/\s+/g, ' ')
    .trim()} `
}
