// Says the reason of a failure in words: which field of a document breaks which rule of its collection.
import { RULE, TEXT, THREAD } from './reasons.ts'

/** What `RefusedWriteError` adds to the message of MongoDB. Viewers get `…` for values. */
const REFUSED = new RegExp(
  String.raw` \(code (?:\d+|…)(?: \w+)?, collection (\w+), _id (?:${TEXT}|…)(?:, errInfo ([\s\S]*))?\)?$`,
)
/** Matches the name of a field in a JSON Schema, or a rule that the document breaks, with its operator. */
const FIELD_OR_RULE = new RegExp(`"propertyName":"([^"]+)"|"operatorName":"([^"]+)","specifiedAs":(${RULE})`, 'g')
const NEGATED = /"operatorName":"(?:\$nor|\$not|not)"/
const ALTERNATIVES = /"operatorName":"(?:\$or|anyOf|oneOf)"/

/** What a document must do, by the operators of queries and the keywords of JSON Schema. */
const MUST: Readonly<Record<string, string>> = {
  $eq: 'be',
  $ne: 'not be',
  $in: 'be one of',
  enum: 'be one of',
  $nin: 'be none of',
  $gt: 'be more than',
  $gte: 'be at least',
  minimum: 'be at least',
  $lt: 'be less than',
  $lte: 'be at most',
  maximum: 'be at most',
  minLength: 'have a length of at least',
  maxLength: 'have a length of at most',
  $type: 'be of type',
  bsonType: 'be of type',
  $regex: 'match',
  pattern: 'match',
  required: 'have',
}

/**
 * Returns a reason without what does not distinguish it from others. Of a refused document, names the rule and the
 * field: "Document failed validation: `sources.title` must not be "bad"".
 */
export function reasonWords(reason: string): string {
  const text = reason.replace(THREAD, '')
  const [refusal, collection = '', info = ''] = REFUSED.exec(text) ?? []
  if (refusal === undefined) return text || '(no reason)'
  const said = text.slice(0, -refusal.length)
  const rules = [...rulesOf(info, collection)]
  if (rules.length === 0) return `${said} (${collection})`
  return `${said}: ${[...new Set(rules)].join(ALTERNATIVES.test(info) ? ', or ' : ', ')}`
}

function* rulesOf(info: string, collection: string): Generator<string> {
  let field = ''
  for (const [, name, operator = '', rule = '{}'] of info.matchAll(FIELD_OR_RULE)) {
    field = name ?? field
    if (name === undefined) yield ruleWords(operator, rule, { field, collection, isNegated: NEGATED.test(info) })
  }
}

interface Broken {
  /** The field of a JSON Schema. A rule of a query names its own. */
  field: string
  collection: string
  isNegated: boolean
}

function ruleWords(operator: string, rule: string, { field, collection, isNegated }: Broken): string {
  const [[key = '', value] = []] = Object.entries<unknown>(parsed(rule))
  const isOfSchema = key === operator
  const bound = isOfSchema ? value : (Object(value)[operator] ?? value)
  const must = MUST[operator]
  if (must === undefined || isNegated || key === '') return `${collection} must ${isNegated ? 'not ' : ''}meet ${rule}`
  const path = [collection, isOfSchema ? field : key].filter(Boolean).join('.')
  return `\`${path}\` must ${must} ${[bound].flat().map(valueText).join(', ')}`
}

/** A rule that is no JSON has no words. */
function parsed(rule: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(rule))
  } catch {
    return {}
  }
}

/** @param value as Extended JSON */
function valueText(value: unknown): string {
  const { pattern, options } = Object(Object(value).$regularExpression)
  return pattern === undefined ? JSON.stringify(value) : `/${pattern}/${options}`
}
