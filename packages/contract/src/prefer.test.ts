import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { type Preferences, parsePrefer } from './prefer.ts'

const NONE: Preferences = { respondAsync: false, waits: true, strict: false }

const cases: [
  rule: string,
  header: string | string[] | undefined,
  preferences: Partial<Preferences>,
][] = [
  ['no header prefers nothing', undefined, {}],
  ['an empty header prefers nothing', '', {}],
  ['respond-async', 'respond-async', { respondAsync: true, waits: false }],
  ['names in any case', 'Respond-ASYNC, WAIT=3', { respondAsync: true, wait: 3 }],
  [
    'several in one header',
    'respond-async, wait=10; foo=bar ,handling=strict',
    { respondAsync: true, wait: 10, strict: true },
  ],
  ['several headers', ['respond-async', 'wait=10'], { respondAsync: true, wait: 10 }],
  ['parameters are no preferences', 'foo; wait=5; respond-async', {}],
  [
    'parameters of a preference are ignored',
    'respond-async; x="a,wait=5"',
    { respondAsync: true, waits: false },
  ],
  ['a quoted value', 'wait="5"', { wait: 5 }],
  ['an escaped quoted value', 'handling="\\strict"', { strict: true }],
  [
    'separators in a quoted value part nothing',
    'foo="a, respond-async; \\", wait=1", wait=2',
    { wait: 2 },
  ],
  ['a quoted value that does not end swallows the rest', 'foo="a, respond-async', {}],
  ['white space around the sign', 'wait \t= 7', { wait: 7 }],
  ['wait=0', 'wait=0', { wait: 0, waits: false }],
  ['the first of two counts', 'wait=5, wait=9, handling=lenient, handling=strict', { wait: 5 }],
  ['the first of two counts, even if it is malformed', 'wait=x, wait=9', {}],
  ['a negative wait is ignored', 'wait=-1', {}],
  ['a fractional wait is ignored', 'wait=1.5', {}],
  [
    'a wait without a value is ignored',
    'wait, respond-async',
    { respondAsync: true, waits: false },
  ],
  ['a wait in other digits is ignored', 'wait=\u0663', {}],
  [
    'an endless wait is a number all the same',
    `wait=${'9'.repeat(400)}`,
    { wait: Number.MAX_SAFE_INTEGER },
  ],
  ['an empty value is none', 'respond-async=""', { respondAsync: true, waits: false }],
  ['a value of a preference without values is ignored', 'respond-async=false', {}],
  ['another handling is not strict', 'handling=lenient', {}],
]

describe('Prefer', () => {
  for (const [rule, header, preferences] of cases) {
    it(rule, () => assert.deepEqual(parsePrefer(header), { ...NONE, ...preferences }))
  }

  it('never throws', () => {
    const pieces = fc.constantFrom('"', '\\', ',', ';', '=', ' ', 'wait', '5', 'respond-async', 'x')
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 30 }),
        (header) => void parsePrefer(header.join('')),
      ),
    )
  })

  it('parses a hostile header in linear time', () => {
    const before = process.cpuUsage()
    for (const piece of ['"', ' ', '=', ',', ';', '\\', '"\\']) parsePrefer(piece.repeat(16_000))
    assert.ok(process.cpuUsage(before).user < 500_000)
  })
})
