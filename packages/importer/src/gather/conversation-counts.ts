// Sums up each conversation for the summary, so that people notice wrong dates, or one speaker
// under two names.
import type { QuoteRequest } from '@sluice/contract'
import type { UntitledRequest } from '../account/ledger.ts'
import { countsAsThread, type ThreadInput } from './gather-threads.ts'

/** A chat, a channel, or a thread that belongs to neither. */
export interface Conversation {
  name: string
  messages: number
  speakers: Set<string>
  first?: string
  last?: string
}

/** `otherThreads`: the number of threads in further conversations. */
export type ConversationCounter = ReturnType<typeof createConversationCounts>

export type ConversationCounts = { conversations: Conversation[]; otherThreads: number }

/** At most this number of speakers of a conversation is distinguished. */
const MOST_SPEAKERS = 1_000
const NAME_CHARACTERS = 100
const short = (name: string) => name.slice(0, NAME_CHARACTERS).toWellFormed()

/** Counts at most `most` conversations, the first ones. */
export function createConversationCounts(most: number) {
  const known = new Map<string, Conversation>()
  const counts: ConversationCounts = { conversations: [], otherThreads: 0 }

  function add({ service, externalId, fields }: ThreadInput, quotes: QuoteRequest[]): boolean {
    // Each day of a chat is a separate source. Two chats may have the same name.
    const chat = externalId.replace(/\/\d{4}-\d\d-\d\d$/, '')
    const key = `${service}\0${chat === externalId ? (fields.channelName ?? externalId) : chat}`
    const name = fields.channelName ?? fields.title ?? fields.placeholderTitle ?? externalId
    const conversation = known.get(key) ?? { name: short(name), messages: 0, speakers: new Set() }
    if (!known.has(key) && known.size === most) return false
    if (!known.has(key)) counts.conversations.push(conversation)
    known.set(key, conversation)
    conversation.messages += quotes.length
    for (const { speaker, createdAt } of quotes) {
      if (speaker && conversation.speakers.size < MOST_SPEAKERS)
        conversation.speakers.add(short(speaker))
      if (!createdAt) continue
      if (createdAt < (conversation.first ?? '~')) conversation.first = createdAt
      if (createdAt > (conversation.last ?? '')) conversation.last = createdAt
    }
    return true
  }

  return {
    counts,
    /** Counts the quotes that a thread's requests store. Quotes with the same id count as one. */
    add(thread: ThreadInput, requests: readonly UntitledRequest[]) {
      const quotes = requests.flatMap((request) => request.quotes)
      const stored = new Map(quotes.map((quote, at) => [quote.externalId ?? at, quote]))
      if (quotes.length > 0 && !add(thread, [...stored.values()]) && countsAsThread(thread))
        counts.otherThreads += 1
    },
  }
}
