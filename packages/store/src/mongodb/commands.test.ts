import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { MongoServerError } from 'mongodb'
import { afterEach, test, vi } from 'vitest'
import { asCommandFailed, CommandFailedError, RefusedWriteError, sendInChunks } from './commands.ts'

const manual = readFileSync(new URL('../../../../docs/operate/mongodb.md', import.meta.url), 'utf8')
/** Above all codes of MongoDB. */
const MOST = 20_000

afterEach(() => void vi.useRealTimers())

test.each([
  { ms: 50, sizes: [250, 1_000, 1_000, 500] },
  { ms: 200, sizes: Array(11).fill(250) },
])(
  'after a first command of $ms ms, the others are as large as the speed of MongoDB allows',
  async ({ ms, sizes }) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const items = Array.from({ length: 2_750 }, (_, at) => at)
    const sent: number[][] = []
    await sendInChunks(
      items,
      250,
      () => 1,
      async (some) => {
        vi.advanceTimersByTime(ms)
        sent.push(some)
      },
    )
    assert.deepEqual(sent.flat(), items)
    assert.deepEqual(
      sent.map(({ length }) => length),
      sizes,
    )
  },
)

test('MongoDB is unavailable for certain after the errors that docs/operate/mongodb.md lists, and after any other a probe decides', () => {
  const table = /^### Errors of MongoDB\n(.*)/ms.exec(manual)?.[1] ?? ''
  const [, row = ''] = /^\|[^|]+\|([^|]+)\| return the jobs until/m.exec(table) ?? []
  const documented = Array.from(row.matchAll(/\b\d+\b/g), ([code]) => Number(code))
  const errors = Array.from({ length: MOST }, (_, code) =>
    asCommandFailed(new MongoServerError({ code })),
  )
  assert(errors.every((error) => error instanceof CommandFailedError))
  const certain = errors.flatMap(({ isCertain }, code) => (isCertain ? [code] : []))
  assert.notEqual(certain.length, 0)
  assert.deepEqual(certain, documented)
})

test('a write that is refused by a code that no document causes is no word on the document', () => {
  const refusal = (code: number) =>
    asCommandFailed(new RefusedWriteError({ code, errmsg: 'no' }, 'quotes', 'id-1'))
  assert(refusal(121) instanceof RefusedWriteError)
  const unknown = refusal(50_463_173)
  assert(unknown instanceof CommandFailedError && !unknown.isCertain)
})

test('a refused write names its document and the rule once, with long texts cut and the rest whole', () => {
  const reasonOf = (text: string) => {
    const details = {
      operatorName: '$not',
      specifiedAs: { text: { $regex: '^no' } },
      consideredValue: text,
    }
    const error = { code: 121, errmsg: 'refused', errInfo: { failingDocumentId: 'id-1', details } }
    return new RefusedWriteError(error, 'quotes', 'id-1').message
  }
  const expected = (text: string) =>
    'refused (code 121 DocumentValidationFailure, collection quotes, _id "id-1", errInfo {"details":' +
    `{"operatorName":"$not","specifiedAs":{"text":{"$regex":"^no"}},"consideredValue":"${text}"}})`
  assert.equal(reasonOf('no'), expected('no'))
  assert.equal(reasonOf(`no${'o'.repeat(3_000)}`), expected(`no${'o'.repeat(98)}…`))
})

test('a rule that is a regular expression is named by its whole pattern', () => {
  const pattern = `^${'a'.repeat(150)}$`
  const details = {
    operatorName: '$regex',
    specifiedAs: { text: new RegExp(pattern, 'i') },
    consideredValue: 'no',
  }
  const error = { code: 121, errmsg: 'refused', errInfo: { details } }
  const json = `"specifiedAs":{"text":{"$regularExpression":{"pattern":"${pattern}","options":"i"}}},"consideredValue":"no"`
  assert(new RefusedWriteError(error, 'quotes', 'id-1').message.includes(json))
})
