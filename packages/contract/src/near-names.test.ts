import assert from 'node:assert/strict'
import { test } from 'vitest'
import { editDistance, nearestName } from './near-names.ts'

test('an edit is an insertion, a deletion, a replacement or a swap of neighbours', () => {
  const rows: [one: string, other: string, edits: number][] = [
    ['', '', 0],
    ['', 'abc', 3],
    ['title', 'title', 0],
    ['titel', 'title', 1],
    ['tite', 'title', 1],
    ['tittle', 'title', 1],
    ['title', 'tidly', 2],
    ['speeker', 'speaker', 1],
    ['kitten', 'sitting', 3],
    ['ca', 'abc', 3],
  ]
  for (const [one, other, edits] of rows) {
    assert.equal(editDistance(one, other), edits, `${one} ${other}`)
    assert.equal(editDistance(other, one), edits, `${other} ${one}`)
  }
})

test('the nearest name is an alias, or at most two edits away, whatever its case and separators', () => {
  const known = ['externalId', 'createdAt', 'title', 'url']
  const rows: [name: string, nearest: string | undefined][] = [
    ['external_id', 'externalId'],
    ['Created-At', 'createdAt'],
    ['createdOn', 'createdAt'],
    ['titel', 'title'],
    ['Subject', 'title'],
    ['ulr', 'url'],
    ['uid', undefined],
    ['metadata', undefined],
    ['__proto__', undefined],
    ['constructor', undefined],
    ['t'.repeat(41), undefined],
    ['', undefined],
  ]
  for (const [name, nearest] of rows)
    assert.equal(nearestName(name, known, { subject: 'title' }), nearest, name)
})
