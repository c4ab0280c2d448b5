import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describeApi } from '@sluice/api/openapi'
import { createThreadParser, DEFAULT_LIMITS, FORMATS, PROBLEMS } from '@sluice/contract'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { test } from 'vitest'

type Json = Readonly<Record<string, unknown>>

const description = describeApi(DEFAULT_LIMITS)
const routes = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, route]) => ({
    name: `${method.toUpperCase()} ${path}`,
    route,
  })),
)

test('the description is valid OpenAPI 3.1', async () => {
  const copy = structuredClone(Object(description))
  assert.deepEqual(await new Validator().validate(copy), { valid: true })
})

test('each route has a name of its own', () => {
  const ids = routes.map(({ route }) => route.operationId)
  assert.deepEqual(ids.toSorted(), [...new Set(ids)].toSorted())
})

test('docs/api.md names each route', async () => {
  const document = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8')
  const missing = routes.map(({ name }) => name).filter((name) => !document.includes(`\`${name}`))
  assert.deepEqual(missing, [])
})

test('each problem is an answer of some route, or refuses a path', () => {
  const documented = routes
    .flatMap(({ route }) => Object.values(route.responses))
    .flatMap(problemCodes)
  const codes = new Set([...documented, 'method_not_allowed'])
  assert.deepEqual([...codes].toSorted(), Object.keys(PROBLEMS).toSorted())
})

function problemCodes({ content }: { content: Json }): string[] {
  return Object(content['application/problem+json']).schema?.properties.code.enum ?? []
}

const validator = formats.default(new Ajv2020({ strict: false, allErrors: true }))
for (const [name, format] of Object.entries(FORMATS)) validator.addFormat(name, format)
validator.addSchema(Object(description), 'api')

test('each body of a request, parameter and header has an example, and each example fits its schema', () => {
  const unfit = [...exampledIn(description, '')].flatMap(({ at, examples }) => {
    const isValid = validator.getSchema(`api#${at}/schema`)
    if (examples.length === 0)
      return isOfAnswer(at) || excludesExternalId(at) ? [] : [`${at} has no example`]
    return examples
      .filter((example) => !isValid?.(example))
      .map((example) => `${at}: ${JSON.stringify(example)}`)
  })
  assert.deepEqual(unfit, [])
})

test('the example of a thread is accepted, strictly too', () => {
  const body = routes.find(({ name }) => name === 'POST /sources')?.route.requestBody?.content[
    'application/json'
  ]
  const examples = examplesOf(Object(body))
  const parse = createThreadParser(DEFAULT_LIMITS)
  assert.deepEqual(
    examples.map((example) => parse(example, { strict: true }).ok),
    [true],
  )
})

/** An answer has an example if its schema says too little: that of a post. */
function isOfAnswer(at: string): boolean {
  return /^\/paths\/[^/]+\/\w+\/responses\/\d+\/content\//.test(at)
}

/**
 * Of `GET /sources`, `since` belongs to a list, and `after` to the list or source that it comes
 * from.
 */
function excludesExternalId(at: string): boolean {
  const [, index] = /^\/paths\/~1sources\/get\/parameters\/(\d+)$/.exec(at) ?? []
  return ['since', 'after'].includes(
    description.paths['/sources']?.get?.parameters[Number(index)]?.name ?? '',
  )
}

/** Everything that has a schema, with its place as a URI fragment and its examples. */
function* exampledIn(value: unknown, at: string): Generator<{ at: string; examples: unknown[] }> {
  if (typeof value !== 'object' || value === null) return
  if ('schema' in value) yield { at, examples: examplesOf(value) }
  for (const [name, part] of Object.entries(value)) {
    const token = encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
    if (name !== 'schema' && name !== 'examples') yield* exampledIn(part, `${at}/${token}`)
  }
}

/** A body has examples beside its schema, a parameter or a header has them in it. */
function examplesOf(value: object): unknown[] {
  const { schema, examples } = Object(value)
  if (examples === undefined) return schema.examples ?? []
  return Object.values(examples).map((example) => Object(example).value)
}
