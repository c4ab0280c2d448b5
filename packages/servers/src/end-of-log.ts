import { readFile } from 'node:fs/promises'

const shownLines = 5

/** The last lines of a log file, for the message that tells why its program ended; empty where there are none. */
export async function endOfLog(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-shownLines).join('\n')
}
