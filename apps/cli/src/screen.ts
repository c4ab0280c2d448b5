// Prints lines on a terminal, in colours.
import { styleText } from 'node:util'
import { printable } from '@sluice/terminal'

/** A line, and its colour on a terminal. If NO_COLOR is set, there are no colours. */
export type Line = string | readonly [text: string, colour: 'red' | 'yellow' | 'green']

export type PrintLines = (lines: readonly Line[]) => void

/** Makes the function that prints lines, without colours if the stream is no terminal. */
export function createPrintLines(stream: NodeJS.WritableStream): PrintLines {
  const paint = (line: Line) => {
    if (typeof line === 'string') return printable(line)
    const [text, colour] = line
    return styleText(colour, printable(text), { stream })
  }
  return (lines) => lines.forEach((line) => void stream.write(`${paint(line)}\n`))
}
