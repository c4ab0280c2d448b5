// Preloaded into a process under test: the contract has two fields more, as if somebody had added a
// line for each to its schema.
import { registerHooks } from 'node:module'

const SCHEMA = '/packages/contract/src/thread-request.ts'

/** The lines of the schema after which the new ones stand. */
const ADDED = {
  "channelId: text(limits.string, 'Identifier of the channel or subreddit.'),":
    "mood: text(limits.string, 'Mood.'),",
  "speaker: text(limits.string, 'Author of the quote.'),":
    "weight: optional(Type.Number({ description: 'Weight.' })),",
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(SCHEMA)) return loaded
    let source = String(loaded.source)
    for (const [before, line] of Object.entries(ADDED)) {
      if (!source.includes(before)) throw new Error(`${SCHEMA} has no line ${before}`)
      source = source.replace(before, `${before} ${line}`)
    }
    return { ...loaded, source }
  },
})
