import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { afterEach, test, vi } from 'vitest'
import { createPrintLines, type Line } from './screen.ts'

const LINES: readonly Line[] = [['MongoDB is unavailable', 'red'], 'a long line \u001b[2J']
const PLAIN = 'MongoDB is unavailable\na long line \ufffd[2J\n'

/** Prints on a terminal of a person with `env`, and returns what was written. */
function printed(isTTY: boolean, env: NodeJS.ProcessEnv = {}): string {
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
  createPrintLines(Object.assign(stream, { isTTY, getColorDepth }))(LINES)
  return text
}

afterEach(() => void vi.unstubAllEnvs())

test('lines have colours, and cannot steer the terminal', () => {
  vi.stubEnv('FORCE_COLOR', undefined)
  assert.equal(printed(true), PLAIN.replace(/^.*/, '\u001b[31m$&\u001b[39m'))
})

test('NO_COLOR, and what is no terminal, get no colours', () => {
  vi.stubEnv('FORCE_COLOR', undefined)
  assert.equal(printed(false), PLAIN)
  assert.equal(printed(true, { NO_COLOR: '1' }), PLAIN)
})
