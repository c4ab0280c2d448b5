// Derives bodies from the schema of a thread: JSON near the schema, then twisted as text, as bytes
// and in its coding.
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import {
  DEFAULT_LIMITS,
  OperationRequestSchema,
  SourceReferenceSchema,
  ThreadRequestSchema,
} from '@sluice/contract'
import fc from 'fast-check'
import { anyJson } from '../support/hostile-values.ts'
import { type JsonSchema, nearSchema, seldom } from './near-schema.ts'

/** A body with the headers that describe it, rightly or wrongly. */
export interface FuzzedBody {
  bytes: Uint8Array
  headers: Record<string, string>
}

/** A schema of the contract as plain data. */
export function schemaOf(schema: object): JsonSchema {
  return JSON.parse(JSON.stringify(schema))
}

const threadSchema = schemaOf(ThreadRequestSchema(DEFAULT_LIMITS))

/** Few ids, so that requests meet the threads of others, at times at the same moment. */
const externalId = fc.nat({ max: 300 }).map((number) => `fuzz-${number}`)
const thread = fc
  .tuple(nearSchema(threadSchema), seldom(externalId, 2))
  .map(([value, id]) =>
    JSON.stringify(id === null || !isObject(value) ? value : { ...value, externalId: id }),
  )

const DEPTH = 2_000
const insertions = [
  '"title":7,',
  '"title":"again",',
  '"score":1e400,',
  '"title":"\\ud800",',
  '"__proto__":{"title":"a"},',
  `"deep":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)},`,
  '"$where":"sleep(1000)",',
]

const twist: fc.Arbitrary<(text: string) => string> = fc.oneof(
  { weight: 30, arbitrary: fc.constant((text: string) => text) },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom(...insertions)
      .map((more) => (text: string) => text.replace('{', `{${more}`)),
  },
  { weight: 2, arbitrary: fc.nat({ max: 200 }).map((at) => (text: string) => text.slice(0, at)) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('\ufeff', '\ufeff\ufeff', ' \n', '{}')
      .map((lead) => (text: string) => lead + text),
  },
  { weight: 1, arbitrary: anyJson.map((other) => () => other) },
)
const twistedThread = fc.tuple(thread, twist).map(([text, change]) => change(text))

const bytesOf = (text: string) => Buffer.from(text)
const plain: fc.Arbitrary<(text: string) => Uint8Array> = fc.oneof(
  { weight: 30, arbitrary: fc.constant(bytesOf) },
  {
    weight: 1,
    arbitrary: fc.constant((text: string) =>
      Buffer.concat([bytesOf(text), Buffer.from([0xff, 0xc0])]),
    ),
  },
  { weight: 1, arbitrary: fc.constant((text: string) => Buffer.from(text, 'utf16le')) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => () => bytes) },
)

type Compress = (bytes: Uint8Array) => Uint8Array
const compressions: [coding: string, compress: Compress][] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
  ['zstd', zstdCompressSync],
]
const trailing = fc.constantFrom<Compress>(
  (bytes) => bytes,
  (bytes) => Buffer.concat([bytes, Buffer.from('more')]),
  (bytes) => bytes.subarray(0, bytes.length >> 1),
)
const WRONG_CODINGS = [
  'gzip',
  'br',
  'zstd',
  'compress',
  'constructor',
  '__proto__',
  'gzip, gzip',
  'identity',
]
const coding: fc.Arbitrary<(bytes: Uint8Array) => FuzzedBody> = fc.oneof(
  { weight: 20, arbitrary: fc.constant((bytes: Uint8Array) => ({ bytes, headers: {} })) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom(...compressions), trailing)
      .map(([[name, compress], end]) => (bytes: Uint8Array) => ({
        bytes: end(compress(bytes)),
        headers: { 'content-encoding': name },
      })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...WRONG_CODINGS).map((name) => (bytes: Uint8Array) => ({
      bytes,
      headers: { 'content-encoding': name },
    })),
  },
)

/** A body of `POST /sources`. */
export const threadBody = encoded(twistedThread, 'application/json')

/** A body of `POST /sources:batch`, as lines or as an array. */
export const importBody = fc.oneof(
  encoded(
    listOf((texts) => texts.join('\n')),
    'application/x-ndjson',
  ),
  encoded(
    listOf((texts) => `[${texts.join(',')}]`),
    'application/json',
  ),
)

/** A query of `DELETE /sources`, and a body of `POST /sources:delete`. */
export const nameQuery = externalId.map((id) => `?service=slack&externalId=${id}`)
export const referencesBody = encoded(
  fc
    .array(
      fc.oneof(
        nearSchema(schemaOf(SourceReferenceSchema(DEFAULT_LIMITS))),
        externalId.map((id) => ({ service: 'slack', externalId: id })),
      ),
      { maxLength: 6 },
    )
    .map((items) => items.map((item) => JSON.stringify(item)).join('\n')),
  'application/x-ndjson',
)

/** A body of `POST /admin/jobs:retry` and `:discard`: both members, or either. */
export const operationBody = encoded(
  fc
    .tuple(
      nearSchema(schemaOf(OperationRequestSchema)),
      fc.constantFrom('ids', 'filter', ''),
      twist,
    )
    .map(([value, without, change]) =>
      change(JSON.stringify(isObject(value) ? { ...value, [without]: undefined } : value)),
    ),
  'application/json',
)

/** No body, or one that its route does not take. */
export const strayBody = fc.oneof(
  { weight: 6, arbitrary: fc.constant<FuzzedBody>({ bytes: Buffer.alloc(0), headers: {} }) },
  { weight: 1, arbitrary: threadBody },
)

function listOf(join: (texts: string[]) => string): fc.Arbitrary<string> {
  return fc.array(twistedThread, { maxLength: 6 }).map(join)
}

function encoded(text: fc.Arbitrary<string>, mediaType: string): fc.Arbitrary<FuzzedBody> {
  return fc.tuple(text, plain, coding).map(([value, toBytes, encode]) => {
    const { bytes, headers } = encode(toBytes(value))
    return { bytes, headers: { 'content-type': mediaType, ...headers } }
  })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
