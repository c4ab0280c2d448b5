// Turns Slack's markup into the text that its users saw: mentions, links, dates, emoji.
import emojiNames from 'emoji-name-map/lib/datasource.json' with { type: 'json' }
import type { Directory } from './directory.ts'

/** Slack writes `<`, `>` and `&` of the text itself as entities, so that brackets always enclose markup. */
const MARKUP = /<([^<>]*)>|&(amp|lt|gt);|:([a-z0-9_+'-]+):(?::skin-tone-([2-6]):)?/g
const EMOJI: Readonly<Record<string, string>> = emojiNames
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>' }
/** `:skin-tone-2:` to `:skin-tone-6:`, after Fitzpatrick types 1-2 to 6. */
const SKIN_TONES = ['🏻', '🏼', '🏽', '🏾', '🏿']

/**
 * Decodes a message's text.
 *
 * @see https://docs.slack.dev/messaging/formatting-message-text
 */
export function decodeText(text: string, directory: Directory): string {
  if (!/[<&:]/.test(text)) return text
  return text.replace(MARKUP, (markup, inside?: string, entity?: string, emoji?: string, tone?: string) => {
    if (inside !== undefined) return decodeBrackets(inside, directory)
    return entity ? (ENTITIES[entity] ?? markup) : decodeEmoji(emoji ?? '', tone, markup)
  })
}

/** Custom emoji have no character: they stay as they are. */
function decodeEmoji(name: string, tone: string | undefined, markup: string): string {
  const emoji = Object.hasOwn(EMOJI, name) ? EMOJI[name] : undefined
  return emoji ? emoji + (tone ? (SKIN_TONES[Number(tone) - 2] ?? '') : '') : markup
}

function decodeBrackets(inside: string, directory: Directory): string {
  const bar = inside.indexOf('|')
  const target = bar === -1 ? inside : inside.slice(0, bar)
  const label = bar === -1 ? '' : decodeEntities(inside.slice(bar + 1))
  const id = target.slice(1)
  if (target.startsWith('@')) return `@${directory.userName(id) ?? (label || id)}`
  if (target.startsWith('#')) return `#${(label || directory.channelName(id)) ?? id}`
  if (target.startsWith('!')) return decodeCommand(id, label)
  return decodeLink(decodeEntities(target), label)
}

/** `<!here>`, `<!subteam^S1|@team>`, `<!date^1700000000^{date}|yesterday>`. */
function decodeCommand(command: string, label: string): string {
  if (label) return label
  const [name, argument] = command.split('^')
  return name === 'subteam' && argument ? `@${argument}` : `@${name}`
}

/** Slack adds a label where the user typed no `https://` or `mailto:`: the label is what the user typed. */
function decodeLink(address: string, label: string): string {
  const plain = address.replace(/^(mailto|tel):/, '')
  if (label === '' || label === plain) return plain
  return label === address.replace(/^[a-z]+:\/\//, '') ? label : `${label} (${address})`
}

function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt);/g, (_, name: string) => ENTITIES[name] ?? '') : text
}
