// Reads records that an import has rejected and the user has corrected. Each is read in its
// original format.
import { Readable } from 'node:stream'
import type { Format, FormatOptions, Found, InputFile, Piece } from '../format.ts'
import { rejected } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { type JsonRecord, readJsonLines } from '../read/json-records.ts'
import { asObject, asText } from '../values/record-fields.ts'
import { jsonFormat } from './sluice-formats.ts'

/**
 * Reads lines of `{ reason, format, path, line, context, record }`. If there is no format, the
 * record is a thread, in the form in which it would be sent.
 */
export function createRejectedFormat(formats: readonly Format[]): Format {
  return {
    name: 'rejected',
    title: 'corrected records',
    description: 'NAME.rejected.ndjson of an earlier import, corrected',
    sourceIs: 'what it is in the format of the record',
    options: [...new Set(formats.flatMap(({ options = [] }) => options))],
    recognises: byShape(({ members }) =>
      ['reason', 'path', 'record'].every((name) => members.has(name)),
    ),
    async *read(files, options) {
      // A warning is yielded only once, although each record is read as a separate file.
      const warnings = new Set<string>()
      const isNew = (one: Found) =>
        one.kind !== 'warning' || warnings.size < warnings.add(one.reason).size
      for (const file of files)
        for await (const lines of readJsonLines(file))
          for (const line of lines)
            yield line.kind === 'rejected'
              ? [line]
              : (await readLine(line, formats, options)).filter(isNew)
    },
  }
}

async function readLine(
  { value, place }: JsonRecord,
  formats: readonly Format[],
  options: FormatOptions,
) {
  const line = asObject(value) ?? {}
  const { record } = line
  const idPrefix = asText(line.idPrefix) ?? ''
  const context = asObject(line.context)
  const format = formats.find(({ name }) => name === line.format) ?? jsonFormat
  const text = typeof record === 'string' ? record : (JSON.stringify(record) ?? '')
  const path = asText(line.path) ?? place.path
  const files = Object.entries(format.restore?.(text, context ?? {}, path) ?? { [path]: text })
  const found: Found[] = []
  for await (const list of format.read(files.map(inMemory), options)) found.push(...list)
  const again = found.find(({ kind }) => kind === 'rejected') ?? (found.length === 0 && NOTHING)
  const pointer = (within = '') => `/record${format.restore === undefined ? within : ''}`
  if (again && 'reason' in again)
    return [
      {
        ...rejected(again.reason, { ...place, pointer: pointer(again.place.pointer) }, record),
        format: format.name,
        ...(context && { context }),
        ...(idPrefix && { idPrefix }),
      },
    ]
  return found.map((one) => ({
    ...(one.kind === 'piece' ? withPrefix(idPrefix, one) : one),
    place: { ...place, pointer: pointer(one.place.pointer) },
  }))
}

function withPrefix(prefix: string, { references, ...piece }: Piece): Piece {
  const ids = references && { references: references.map((id) => `${prefix}${id}`) }
  return { ...piece, ...ids, externalId: `${prefix}${piece.externalId}` }
}

const NOTHING = rejected('The record is empty.', { path: '' }, undefined)

function inMemory([path, content]: [string, string]): InputFile {
  return { path, open: () => Readable.from([Buffer.from(content)]) }
}
