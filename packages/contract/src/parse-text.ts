// Parses the text of a body: one thread, or an array of threads.
import type { ParsedText, ParseOptions } from './parse-thread.ts'
import { createThreadParser, createThreadTextParser, parseJson } from './parse-thread.ts'
import { EMPTY_IMPORT, type RefusedText, refuseText } from './refused-text.ts'
import type { Limits } from './thread-request.ts'

/** The elements of an array, each for itself. */
export type ParsedArray = { ok: true; elements: ParsedText[] } | RefusedText

/** Parses texts. It returns plain data, so that another thread can parse for this one. It never throws. */
export type TextParser = ReturnType<typeof createTextParser>

/** Makes the parsers of texts for their limits. */
export function createTextParser(limits: Limits) {
  const parseThread = createThreadParser(limits)
  return {
    /** Parses one thread. */
    thread: createThreadTextParser(parseThread, limits),
    /** Parses an array of at most `maxItems` threads. */
    array(text: Buffer, { maxItems, ...options }: ParseOptions & { maxItems: number }): ParsedArray {
      const json = parseJson(text, limits)
      if (!json.ok) return json
      if (!Array.isArray(json.value)) return refuseText('type', 'The body must be a JSON array.')
      if (json.value.length === 0) return EMPTY_IMPORT
      return json.value.length > maxItems
        ? refuseText('too_many', `An array may have at most ${maxItems} items; send application/x-ndjson for more.`)
        : { ok: true, elements: json.value.map((element) => parseThread(element, options)) }
    },
  }
}
