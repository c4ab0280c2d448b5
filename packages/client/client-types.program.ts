// Writes out the types of the contract's schemas for the packed client, which must need no other
// package.
import {
  AcceptedAnswerSchema,
  DEFAULT_LIMITS,
  DeletionAnswerSchema,
  DeletionsAnswerSchema,
  ImportAnswerSchema,
  ImportProgressSchema,
  JobAnswerSchema,
  LIMIT_DETAILS,
  ProblemSchema,
  QuoteAnswerSchema,
  SERVICES,
  SourceAnswerSchema,
  SourceListSchema,
  SourcePageSchema,
  ThreadAnswerSchema,
  ThreadRequestSchema,
  ValidationErrorSchema,
} from '@sluice/contract'

/** The part of JSON Schema that the contract uses. */
interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: readonly unknown[]
  items?: Schema
  anyOf?: readonly Schema[]
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  description?: string
}

/** The schema as it stands in JSON, without what only TypeScript sees. */
function plain(schema: object): Schema {
  return JSON.parse(JSON.stringify(schema))
}

const request = plain(ThreadRequestSchema(DEFAULT_LIMITS))
const source = plain(SourceAnswerSchema)
const problem = plain(ProblemSchema)
const validationError = plain(ValidationErrorSchema)
const page = plain(SourcePageSchema)
const list = plain(SourceListSchema)
const itemResults = partOf(plain(ImportAnswerSchema), 'results').items?.anyOf ?? []
const job = plain(JobAnswerSchema)

/**
 * What the client exports, by name. A schema that is part of another one stands there by its name.
 */
const named: ReadonlyMap<string, Schema> = new Map([
  ['Service', { enum: SERVICES, description: 'What kind of thing a source is.' }],
  ['Outcome', partOf(source, 'outcome')],
  ['JobState', partOf(job, 'state')],
  ['ProblemCode', partOf(problem, 'code')],
  ['LimitName', { enum: Object.keys(LIMIT_DETAILS), description: 'The limits of one request.' }],
  ['ValidationErrorCode', partOf(validationError, 'code')],
  [
    'ValidationError',
    { description: 'What is wrong with a value of a request.', ...validationError },
  ],
  ['Problem', problem],
  ['QuoteRequest', partOf(request, 'quotes').items ?? {}],
  ['ThreadRequest', request],
  [
    'Warning',
    {
      description: 'An unknown field that looks like a known one.',
      ...partOf(plain(ThreadAnswerSchema), 'warnings').items,
    },
  ],
  ['SourceAnswer', { description: 'A source, as stored.', ...source }],
  ['QuoteAnswer', { description: 'A quote, as stored.', ...plain(QuoteAnswerSchema) }],
  [
    'ThreadAnswer',
    {
      description: 'The source and the quotes of a request, as stored.',
      ...plain(ThreadAnswerSchema),
    },
  ],
  ['AcceptedAnswer', { description: 'What was sent, normalised.', ...plain(AcceptedAnswerSchema) }],
  ['StoredSource', { description: 'A stored source, as it is read.', ...partOf(page, 'source') }],
  [
    'StoredQuote',
    { description: 'A stored quote, as it is read.', ...partOf(page, 'quotes').items },
  ],
  [
    'SourcePage',
    { description: 'A stored source, and a page of its quotes in their order.', ...page },
  ],
  ['ListedSource', { description: 'A stored source in a list.', ...partOf(list, 'sources').items }],
  ['SourceList', { description: "A page of a tenant's sources.", ...list }],
  ['StoredItem', itemResults[0] ?? {}],
  ['DeletedItem', partOf(plain(DeletionsAnswerSchema), 'results').items?.anyOf?.[0] ?? {}],
  ['RefusedItem', itemResults[1] ?? {}],
  [
    'ImportProgress',
    { description: 'What became of an import so far.', ...plain(ImportProgressSchema) },
  ],
  ['DeletionAnswer', plain(DeletionAnswerSchema)],
  ['JobAnswer', { description: 'The state of a job.', ...job }],
])

const names = new Map(Array.from(named, ([name, schema]) => [shapeOf(schema), name]))

/** The text of the file. */
export function clientTypes(): string {
  const head = '// The types of requests and answers, made from the schemas of the contract.'
  return `${[head, ...Array.from(named, ([name, schema]) => declare(name, schema))].join('\n\n')}\n`
}

function partOf(schema: Schema, name: string): Schema {
  const part = schema.properties?.[name]
  if (part === undefined) throw new Error(`The schema has no property ${name}`)
  return part
}

/** Two schemas of one shape accept the same values. */
function shapeOf({ type, enum: values, properties, required, items }: Schema): string {
  return JSON.stringify({
    ...(values === undefined && { type }),
    values,
    properties,
    required,
    items,
  })
}

function declare(name: string, schema: Schema): string {
  const comment = schema.description === undefined ? '' : `/** ${schema.description} */\n`
  return schema.properties === undefined
    ? `${comment}export type ${name} = ${typeOf(schema, '')}`
    : `${comment}export interface ${name} ${objectText(schema, '')}`
}

function objectText({ properties = {}, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `
  const members = Object.entries(properties).flatMap(([name, schema]) => {
    const comment = schema.description === undefined ? [] : [`${inner}/** ${schema.description} */`]
    const mark = required.includes(name) ? '' : '?'
    return [
      ...comment,
      `${inner}${/^\w+$/.test(name) ? name : `'${name}'`}${mark}: ${typeText(schema, inner)}`,
    ]
  })
  return ['{', ...members, `${indent}}`].join('\n')
}

function typeText(schema: Schema, indent: string): string {
  const isNamable = schema.enum !== undefined || schema.properties !== undefined
  return (isNamable && names.get(shapeOf(schema))) || typeOf(schema, indent)
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  if (schema.properties !== undefined) return objectText(schema, indent)
  if (schema.items !== undefined) return `${typeText(schema.items, indent)}[]`
  return [schema.type ?? 'unknown'].flat().map(plainType).join(' | ')
}

function plainType(type: string): string {
  return type === 'integer' ? 'number' : type
}

function literal(value: unknown): string {
  return typeof value === 'string'
    ? `'${value.replaceAll(/['\\]/g, '\\$&')}'`
    : JSON.stringify(value)
}
