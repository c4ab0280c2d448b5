// The source of a message in a chat without an end.
import { DAY_CHARACTERS } from './iso-date.ts'

/**
 * Returns the externalId and the fields of a chat's day in UTC, which is a source because the chat
 * has no end.
 */
export function dayOfChat(chat: string, name: string, createdAt: string) {
  const day = createdAt.slice(0, DAY_CHARACTERS)
  const fields = { title: `${name}, ${day}`, channelName: name, createdAt: `${day}T00:00:00.000Z` }
  return { externalId: `${chat}/${day}`, fields }
}
