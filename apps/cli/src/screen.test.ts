import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { afterEach, test, vi } from 'vitest'
import { createScreen, type Line } from './screen.ts'

const LINES: readonly Line[] = [
  ['MongoDB is unavailable', 'red'],
  'a long line \u001b[2J',
  'third',
  'fourth',
]

/** Draws twice on a terminal of a person with `env`, and returns what was written. */
function drawn(
  size: { isTTY: boolean; rows: number; columns: number },
  env: NodeJS.ProcessEnv = {},
) {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  // Not the environment of the test: CI has few colours.
  const getColorDepth = () =>
    WriteStream.prototype.getColorDepth({ TERM: 'xterm-256color', ...env })
  const screen = createScreen(Object.assign(stream, size, { getColorDepth }) as never)
  screen.print(LINES.slice(0, 2))
  const printed = text
  text = ''
  screen.redraw(LINES)
  screen.redraw(LINES)
  return { printed, redrawn: text, canRedraw: screen.canRedraw }
}

afterEach(() => void vi.unstubAllEnvs())

test('lines are redrawn in place, cut to the terminal, and cannot steer it', () => {
  vi.stubEnv('FORCE_COLOR', undefined)
  const { redrawn, canRedraw } = drawn({ isTTY: true, rows: 4, columns: 10 })
  const lines =
    '\u001b[31mMongoDB is\u001b[39m\u001b[K\na long lin\u001b[K\nthird\u001b[K\n\u001b[J'
  assert.equal(redrawn, `\u001b[2J\u001b[H${lines}\u001b[H${lines}`)
  assert.equal(canRedraw, true)
})

test('NO_COLOR, and what is no terminal, get no colours', () => {
  vi.stubEnv('FORCE_COLOR', undefined)
  const plain = 'MongoDB is unavailable\na long line \ufffd[2J\n'
  assert.equal(drawn({ isTTY: false, rows: 9, columns: 99 }).printed, plain)
  assert.equal(drawn({ isTTY: true, rows: 9, columns: 99 }, { NO_COLOR: '1' }).printed, plain)
})
