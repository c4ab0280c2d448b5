// Analyses the reason of a failure: the part that all failures with the same cause share, and the
// part that people need to read.
import { hash } from 'node:crypto'

/** A reason without values. Only this file makes one. */
export type MaskedReason = string & { readonly isMasked: true }

/** Bounds the characters of a reason that people see: a reason may quote a whole document. */
export const SHOWN_REASON = 2_000

/** Stands for a value that was removed. */
export const VARIES = '…' as MaskedReason

// The source texts of regular expressions that match parts of a reason.
/** A text in JSON. */
const TEXT = /"(?:[^"\\]|\\[\s\S])*"/.source
/**
 * A validation rule in an error of MongoDB: JSON of at most three levels of objects. A rule with
 * more levels is masked like any other text.
 */
const RULE = [1, 2, 3].reduce((inner) => `\\{(?:[^{}"]|${TEXT}${inner && `|${inner}`})*\\}`, '')
/** The name of a field: a key of an object, or the value of `operatorName` or `propertyName`. */
const NAME = /(?<=[{,])"[$\w.]+"(?=:)|(?<="(?:operator|property)Name":)"[$\w.]+"/.source
/**
 * A text in any kind of quotation marks. If the reason was cut within the text, the text ends
 * there.
 */
const QUOTED = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?<!\w)'[^']*(?:'|$)|`[^`]*(?:`|$)/.source
/** A word, a number or an id. */
const WORD = /[\w.:/-]+/.source

/**
 * Matches the parts of a reason, in this order: names and MongoDB's whole rules (captured, because
 * they are kept), quoted texts, and words.
 */
const PARTS = new RegExp(`(${NAME}|(?<="specifiedAs":)${RULE})|${QUOTED}|${WORD}`, 'g')
/**
 * The reason of a job with several threads begins with the name of the failed thread, which does
 * not belong to the cause.
 */
const THREAD = /^threads\[\d+\] "(?:[^"\\]|\\[\s\S])*": /
/** Codes of errors, such as `E11000`. */
const ERROR_CODE = /^[A-Z]{1,3}\d{1,6}$/

/**
 * Returns a reason without its thread's name, quoted texts, numbers and ids. Failures with the same
 * cause have equal results.
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

/** Returns a short id for a group, which people can type. */
export function groupIdOf(reasonGroup: string): string {
  return hash('sha256', reasonGroup).slice(0, 8)
}

/**
 * Matches what `RefusedWriteError` adds to MongoDB's message. Where operators see values, viewers
 * see `…`.
 */
const REFUSED = new RegExp(
  String.raw` \(code (?:\d+|…)(?: \w+)?, collection (\w+), _id (?:${TEXT}|…)(?:, errInfo ([\s\S]*))?\)?$`,
)
/**
 * Matches a field's name in a JSON Schema, or a rule that the document breaks, with the rule's
 * operator.
 */
const FIELD_OR_RULE = new RegExp(
  `"propertyName":"([^"]+)"|"operatorName":"([^"]+)","specifiedAs":(${RULE})`,
  'g',
)
const NEGATED = /"operatorName":"(?:\$nor|\$not|not)"/
const ALTERNATIVES = /"operatorName":"(?:\$or|anyOf|oneOf)"/

/**
 * Words for what a document must do, by the query operators and JSON Schema keywords that demand
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

/** Matches characters by which a value would turn the direction of the words after it. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g

/**
 * Returns the part of a reason that distinguishes it from others. If MongoDB refused a document,
 * names the rule and the field, for example "Document failed validation: `sources.title` must not
 * be "bad"".
 */
export function reasonWords(reason: string): string {
  const text = reason.replace(THREAD, '').replace(TURNS, '\ufffd')
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

/**
 * @param of.field the field, if the rule is part of a JSON Schema. A rule of a query has the name
 * of its field.
 */
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

/** Parses a rule. A text that only looks like one must not break a page. */
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
