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

/** What a document must do, and the operators of queries and the keywords of JSON Schema that demand it. */
const DEMANDS = Object.entries({
  be: ['$eq'],
  'not be': ['$ne'],
  'be one of': ['$in', 'enum'],
  'be none of': ['$nin'],
  'be more than': ['$gt'],
  'be at least': ['$gte', 'minimum'],
  'be less than': ['$lt'],
  'be at most': ['$lte', 'maximum'],
  'have a length of at least': ['minLength'],
  'have a length of at most': ['maxLength'],
  'be of type': ['$type', 'bsonType'],
  match: ['$regex', 'pattern'],
  have: ['required'],
})

/**
 * Returns a reason without what does not distinguish it from others. Of a refused document, names the rule and the
 * field: "Document failed validation: `sources.title` must not be "bad"".
 */
export function reasonWords(reason: string): string {
  const text = reason.replace(THREAD, '')
  const [refusal, collection = '', info = ''] = REFUSED.exec(text) ?? []
  if (refusal === undefined) return text || '(no reason)'
  const said = text.slice(0, -refusal.length)
  let field = ''
  const rules = [...info.matchAll(FIELD_OR_RULE)].flatMap(([, name, operator = '', rule = '{}']) => {
    field = name ?? field
    if (name !== undefined) return []
    const words = NEGATED.test(info) ? undefined : ruleWords(operator, rule, { collection, field })
    return words ?? `${collection} must ${NEGATED.test(info) ? 'not ' : ''}meet ${rule}`
  })
  if (rules.length === 0) return `${said} (${collection})`
  return `${said}: ${[...new Set(rules)].join(ALTERNATIVES.test(info) ? ', or ' : ', ')}`
}

/** @param of.field the field of a JSON Schema. A rule of a query names its own. */
function ruleWords(operator: string, rule: string, of: { collection: string; field: string }): string | undefined {
  const [must] = DEMANDS.find(([, operators]) => operators.includes(operator)) ?? []
  if (must === undefined) return undefined
  const [[key = '', value] = []] = Object.entries<unknown>(parseRule(rule))
  const isOfSchema = key === operator
  const bound = isOfSchema ? value : (Object(value)[operator] ?? value)
  const path = [of.collection, isOfSchema ? of.field : key].filter(Boolean).join('.')
  return `\`${path}\` must ${must} ${[bound].flat().map(valueText).join(', ')}`
}

/** A text that only looks like a rule breaks no page. */
function parseRule(rule: string): Record<string, unknown> {
  try {
    return JSON.parse(rule)
  } catch {
    return {}
  }
}

/** @param value as Extended JSON */
function valueText(value: unknown): string {
  const { pattern, options } = Object(Object(value).$regularExpression)
  return pattern === undefined ? JSON.stringify(value) : `/${pattern}/${options}`
}
