import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { rejectedFormat } from './sluice-formats.ts'

const thread = { service: 'slack', externalId: 'C1', title: 'A thread', quotes: [{ text: 'a' }] }
const line = (record: unknown) => JSON.stringify({ reason: 'It was wrong.', path: 'export.zip', line: 7, record })

describe('a file of rejected records', () => {
  it('gives records that are threads, or the text of one', async () => {
    const records = [thread, JSON.stringify({ ...thread, externalId: 'C2' })]
    const { pieces } = await readAll(rejectedFormat, [inputFile('a.rejected.ndjson', records.map(line).join('\n'))])
    assert.deepEqual(
      pieces.map(({ externalId, place }) => [externalId, place]),
      [
        ['C1', { path: 'a.rejected.ndjson', line: 1, pointer: '/record' }],
        ['C2', { path: 'a.rejected.ndjson', line: 2, pointer: '/record' }],
      ],
    )
  })

  it('rejects again what is still wrong, as the record that it was', async () => {
    const records = [{ ...thread, service: 7 }, '{"service":', 'null']
    const lines = [...records.map(line), '{"reason":"none"}', 'nothing']
    const { rejected } = await readAll(rejectedFormat, [inputFile('a.rejected.ndjson', lines.join('\n'))])
    assert.deepEqual(
      rejected.map(({ place, record }) => [place.line, place.pointer, record]),
      [
        [1, '/record/service', records[0]],
        [2, '/record', '{"service":'],
        [3, '/record', null],
        [4, '/record', undefined],
        [5, undefined, 'nothing'],
      ],
    )
  })

  it('is recognised by its members', async () => {
    assert.ok(await recognises(rejectedFormat, [inputFile('a', line(thread))]))
    assert.ok(!(await recognises(rejectedFormat, [inputFile('a', JSON.stringify(thread))])))
  })
})
