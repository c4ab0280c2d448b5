import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createThreadParser } from './parse-thread.ts'
import { DEFAULT_LIMITS } from './thread-request.ts'

const parse = createThreadParser(DEFAULT_LIMITS)
const source = { service: 'slack', externalId: 'C1', title: 'A thread', quotes: [] as unknown[] }
const warningsIn = (body: unknown, strict = false) => parse(body, { strict }).warnings
const pointers = (body: unknown) =>
  warningsIn(body)?.map(({ pointer, message }) => [pointer, /mean (\w+)/.exec(message)?.[1]])

test('an unknown field that looks like a known one is listed with the field that its sender may have meant', () => {
  assert.deepEqual(warningsIn({ ...source, quotes: [{ text: 'a' }, { text: 'b', user: 'ada' }] }), [
    {
      pointer: '/quotes/1/user',
      code: 'unknown_field',
      message: 'user is not a field of a quote and was ignored. Did you mean speaker?',
    },
  ])
  assert.deepEqual(pointers({ ...source, titel: 'a', permalink: 'b', 'created/at': 'c' }), [
    ['/permalink', 'url'],
    ['/created~1at', 'createdAt'],
  ])
})

test('an invalid request has its warnings too', () => {
  const parsed = parse({ ...source, quotes: [{ body: 'a' }] }, { strict: false })
  assert.equal(parsed.ok, false)
  assert.deepEqual(
    parsed.warnings?.map(({ pointer }) => pointer),
    ['/quotes/0/body'],
  )
})

test('nothing is listed for other unknown fields, for a field whose meaning was sent as well, and in strict handling', () => {
  assert.equal(
    'warnings' in
      parse({ ...source, metadata: 1, quotes: [{ text: 'a', colour: 1 }] }, { strict: false }),
    false,
  )
  assert.equal(
    warningsIn({ ...source, quotes: [{ text: 'a', body: 'b', username: 'ada', user: 7 }] }),
    undefined,
  )
  assert.equal(warningsIn({ ...source, link: 'a' }, true), undefined)
  assert.equal(
    warningsIn({ ...source, url: null, quotes: [{ text: 'a', speaker: '' }] }),
    undefined,
  )
})

test('each name is listed once, and at most 20', () => {
  const quotes = Array.from({ length: 100 }, (_, at) => ({
    text: 'a',
    user: 'ada',
    [`speaker${at % 10}`]: 1,
  }))
  assert.equal(warningsIn({ ...source, quotes })?.length, 11)
  const many = Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`speaker${at + 10}`, 1]))
  assert.equal(warningsIn({ ...source, quotes: [many] })?.length, 20)
})
