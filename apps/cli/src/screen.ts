// Draws lines on a terminal, in colours, and in place of the lines that it drew before.
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { printable } from '@sluice/terminal'

/** A line, and its colour on a terminal. If NO_COLOR is set, there are no colours. */
export type Line = string | readonly [text: string, colour: 'red' | 'yellow' | 'green']

type Stream = Pick<WriteStream, 'write' | 'isTTY' | 'rows' | 'columns'> & NodeJS.WritableStream

const CLEAR = { all: '\u001b[2J', line: '\u001b[K', below: '\u001b[J' }
const HOME = '\u001b[H'

/**
 * Opens a screen. A stream that is no terminal gets all lines without colours, one below the other.
 */
export function createScreen(stream: Stream) {
  function paint(line: Line, width?: number): string {
    const [text, colour] = typeof line === 'string' ? [line] : line
    const shown = printable(text).slice(0, width)
    return colour === undefined ? shown : styleText(colour, shown, { stream })
  }
  let isDrawn = false
  return {
    print: (lines: readonly Line[]) =>
      lines.forEach((line) => void stream.write(`${paint(line)}\n`)),
    /** Draws lines in place of the previous ones, as many as fit. */
    redraw(lines: readonly Line[]): void {
      // A terminal that does not know its size reports 0.
      const [rows, columns] = [stream.rows || 25, stream.columns || 80]
      const text = lines.slice(0, rows - 1).map((line) => `${paint(line, columns)}${CLEAR.line}\n`)
      stream.write(`${isDrawn ? '' : CLEAR.all}${HOME}${text.join('')}${CLEAR.below}`)
      isDrawn = true
    },
    canRedraw: stream.isTTY,
  }
}

export type Screen = ReturnType<typeof createScreen>
