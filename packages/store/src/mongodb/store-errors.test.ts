import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { MongoServerError } from 'mongodb'
import { test } from 'vitest'
import { asStoreAway, RefusedWriteError, StoreAwayError } from './store-errors.ts'

const manual = readFileSync(new URL('../../../../docs/operating.md', import.meta.url), 'utf8')
/** Beyond all codes that concern the whole store. */
const MOST = 20_000

test('an error means that MongoDB is away, or may be, if docs/operating.md lists its code', () => {
  const table = /^### Errors of MongoDB\n(.*?)^## /ms.exec(manual)?.[1] ?? ''
  const rows = table.matchAll(/^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$/gm)
  const documented = Array.from(rows, ([, error = '', codes = '']) => ({
    timedOut: error.includes('too slow'),
    codes: Array.from(codes.matchAll(/\b\d+\b/g), ([code]) => Number(code)),
  }))
  const listed = (timedOut: boolean) =>
    documented.flatMap((row) => (row.timedOut === timedOut ? row.codes : [])).toSorted((one, other) => one - other)
  const known = (timedOut: boolean) =>
    Array.from({ length: MOST }, (_, code) => code).filter((code) => {
      const error = asStoreAway(new MongoServerError({ code }))
      return error instanceof StoreAwayError && error.timedOut === timedOut
    })
  assert.notEqual(listed(false).length, 0)
  assert.deepEqual(known(false), listed(false))
  assert.notEqual(listed(true).length, 0)
  assert.deepEqual(known(true), listed(true))
})

test('a refused write names its document and the rule once, with long texts cut and the rest whole', () => {
  const reasonOf = (text: string) => {
    const details = { operatorName: '$not', specifiedAs: { text: { $regex: '^no' } }, consideredValue: text }
    const error = { code: 121, errmsg: 'refused', errInfo: { failingDocumentId: 'id-1', details } }
    return new RefusedWriteError(error, 'quotes', ['id-1']).message
  }
  const expected = (text: string) =>
    'refused (code 121 DocumentValidationFailure, collection quotes, _id "id-1", errInfo {"details":' +
    `{"operatorName":"$not","specifiedAs":{"text":{"$regex":"^no"}},"consideredValue":"${text}"}})`
  assert.equal(reasonOf('no'), expected('no'))
  assert.equal(reasonOf(`no${'o'.repeat(3_000)}`), expected(`no${'o'.repeat(98)}`))
})
