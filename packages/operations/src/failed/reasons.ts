// Reads the reason of a failure: what is the same for all failures of one cause, and what it says
// in words.
import { hash } from 'node:crypto'

/** A reason without values. Only this file makes one. */
export type MaskedReason = string & { readonly isMasked: true }

/** The most characters of a reason that is shown: a reason may quote a whole document. */
export const SHOWN_REASON = 2_000

/** Stands for a value. */
export const VARIES = '…' as MaskedReason

// Patterns of the parts of a reason. Each is the source of a regular expression.
/** A text in JSON. */
const TEXT = /"(?:[^"\\]|\\[\s\S])*"/.source
/**
 * A validation rule in an error of MongoDB: JSON of at most three levels of objects. A rule with
 * more levels is masked like any other text.
 */
const RULE = [1, 2, 3].reduce((inner) => `\\{(?:[^{}"]|${TEXT}${inner && `|${inner}`})*\\}`, '')
/**
 * The name of a field, as the key of an object or as the value of `operatorName` or `propertyName`.
 */
const NAME = /(?<=[{,])"[$\w.]+"(?=:)|(?<="(?:operator|property)Name":)"[$\w.]+"/.source
/** A text in quotation marks of any kind. It may be cut, and then ends with the reason. */
const QUOTED = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?<!\w)'[^']*(?:'|$)|`[^`]*(?:`|$)/.source
/** A word, a number or an id. */
const WORD = /[\w.:/-]+/.source

/**
 * Matches, in this order, what is kept (captured: names, and MongoDB's whole rules), quoted texts,
 * and words.
 */
const PARTS = new RegExp(`(${NAME}|(?<="specifiedAs":)${RULE})|${QUOTED}|${WORD}`, 'g')
/**
 * The reason of a job of several threads begins with the name of the failed thread, which is no
 * part of the cause.
 */
const THREAD = /^threads\[\d+\] "(?:[^"\\]|\\[\s\S])*": /
/** Codes of errors, such as `E11000`. */
const ERROR_CODE = /^[A-Z]{1,3}\d{1,6}$/

/**
 * Returns a reason without its thread's name, quoted texts, numbers and ids: equal for failures of
 * one cause.
 */
export function reasonGroupOf(reason: string): MaskedReason {
  const group = reason
    .replace(THREAD, '')
    .slice(0, SHOWN_REASON)
    .replace(PARTS, (found, name?: string) => {
      const isSame = /^[\w.:/-]/.test(found) && (!/\d/.test(found) || ERROR_CODE.test(found))
      return name || isSame ? found : VARIES
    })
  return group as MaskedReason
}

/** Returns the short id of a group, which people can type. */
export function groupIdOf(reasonGroup: string): string {
  return hash('sha256', reasonGroup).slice(0, 8)
}

/** What `RefusedWriteError` adds to the message of MongoDB. Viewers get `…` for values. */
const REFUSED = new RegExp(
  String.raw` \(code (?:\d+|…)(?: \w+)?, collection (\w+), _id (?:${TEXT}|…)(?:, errInfo ([\s\S]*))?\)?$`,
)
/**
 * Matches the name of a field in a JSON Schema, or a rule that the document breaks, with its
 * operator.
 */
const FIELD_OR_RULE = new RegExp(
  `"propertyName":"([^"]+)"|"operatorName":"([^"]+)","specifiedAs":(${RULE})`,
  'g',
)
const NEGATED = /"operatorName":"(?:\$nor|\$not|not)"/
const ALTERNATIVES = /"operatorName":"(?:\$or|anyOf|oneOf)"/

/**
 * What a document must do, and the operators of queries and the keywords of JSON Schema that demand
 * it.
 */
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
 * Returns a reason without what does not distinguish it from others. Of a refused document, names
 * the rule and the field: "Document failed validation: `sources.title` must not be "bad"".
 */
export function reasonWords(reason: string): string {
  const text = reason.replace(THREAD, '')
  const [refusal, collection = '', info = ''] = REFUSED.exec(text) ?? []
  if (refusal === undefined) return text || '(no reason)'
  const said = text.slice(0, -refusal.length)
  let field = ''
  const rules = [...info.matchAll(FIELD_OR_RULE)].flatMap(
    ([, name, operator = '', rule = '{}']) => {
      field = name ?? field
      if (name !== undefined) return []
      const words = NEGATED.test(info)
        ? undefined
        : ruleWords(operator, rule, { collection, field })
      return words ?? `${collection} must ${NEGATED.test(info) ? 'not ' : ''}meet ${rule}`
    },
  )
  if (rules.length === 0) return `${said} (${collection})`
  return `${said}: ${[...new Set(rules)].join(ALTERNATIVES.test(info) ? ', or ' : ', ')}`
}

/** @param of.field the field of a JSON Schema. A rule of a query names its own. */
function ruleWords(
  operator: string,
  rule: string,
  of: { collection: string; field: string },
): string | undefined {
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
