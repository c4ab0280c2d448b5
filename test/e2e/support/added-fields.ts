// Preloaded into a process under test: the contract has two fields more, as if somebody had added a line for each to its schemas.
import { registerHooks } from 'node:module'

/** For each file of the contract, the lines after which the new ones are put. */
const ADDED: Readonly<Record<string, readonly (readonly [before: string, line: string])[]>> = {
  'thread-request.ts': [
    [
      "channelId: text(limits.string, 'Identifier of the channel or subreddit.'),",
      "mood: text(limits.string, 'Mood.'),",
    ],
    [
      "speaker: text(limits.string, 'Author of the quote.'),",
      "weight: optional(Type.Number({ description: 'Weight.' })),",
    ],
  ],
  'answers.ts': [
    ['channelId: Type.Optional(text()),', 'mood: Type.Optional(text()),'],
    ["speaker: Type.Optional(text('Sent as speaker or as username.')),", 'weight: Type.Optional(Type.Number()),'],
  ],
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const [, file = ''] = /\/packages\/contract\/src\/([^/]+)$/.exec(url) ?? []
    let source = loaded.source?.toString() ?? ''
    for (const [before, line] of ADDED[file] ?? []) {
      if (!source.includes(before)) throw new Error(`${file} has no line ${before}`)
      source = source.replace(before, `${before} ${line}`)
    }
    return file in ADDED ? { ...loaded, source } : loaded
  },
})
