// Makes the sources of messages in a chat that has no end.
import { DAY_CHARACTERS } from './iso-date.ts'

/** Returns the externalId and the fields of a source that stands for one UTC day of a chat. */
export function dayOfChat(chat: string, name: string, createdAt: string) {
  const day = createdAt.slice(0, DAY_CHARACTERS)
  const fields = { title: `${name}, ${day}`, channelName: name, createdAt: `${day}T00:00:00.000Z` }
  return { externalId: `${chat}/${day}`, fields }
}
