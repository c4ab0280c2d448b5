// Leaves out what a mail quotes of the mails that it answers.

/** "On Monday, Ada wrote:", in the languages of common programs. It may go on for three lines. */
const ATTRIBUTION =
  /^.{0,300}(?<!\p{L})(wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał\(a\)|napsal|написал)(?!\p{L}).{0,100}:\s*$/iu
const ATTRIBUTION_LINES = 3
const BEGINNING = /^\s*(on|am|le|el|em|il|op|den|dne)\b/i
/** What Outlook puts above the whole of the mail that it answers. */
const ORIGINAL =
  /^\s*-{2,} ?(original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale) ?-{2,}\s*$/i

/**
 * Returns the text without lines that begin with `>`, without the line that introduces them, and without an original below it. A
 * text that is nothing but quotes stays.
 */
export function withoutQuotes(text: string): string {
  const kept: string[] = []
  for (const line of text.split('\n')) {
    if (ORIGINAL.test(line)) break
    if (!line.startsWith('>')) kept.push(line)
    else removeAttribution(kept)
  }
  return (
    kept
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim() || text
  )
}

/** Removes the attribution that stands directly above a quote, blank lines aside. */
function removeAttribution(lines: string[]) {
  const last = lines.findLastIndex((line) => line.trim() !== '')
  if (!lines[last]?.trimEnd().endsWith(':')) return
  for (let start = Math.max(0, last - ATTRIBUTION_LINES + 1); start <= last; start++) {
    const isWhole = start === last || BEGINNING.test(lines[start] ?? '')
    if (isWhole && ATTRIBUTION.test(lines.slice(start, last + 1).join(' '))) lines.splice(start)
  }
}
