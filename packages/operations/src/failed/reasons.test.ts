import assert from 'node:assert/strict'
import { test } from 'vitest'
import { reasonGroupOf, reasonWords } from './reasons.ts'

/** A reason as a worker records it, with what MongoDB says of a rule. */
function refused(details: object, collection = 'sources'): string {
  const about = `code 121 DocumentValidationFailure, collection ${collection}, _id "s \\"1\\""`
  return `Document failed validation (${about}, errInfo ${JSON.stringify({ details })})`
}

/** A rule of a query, as MongoDB answers it. */
const query = (field: string, operator: string, value: unknown) => ({
  operatorName: operator,
  specifiedAs: { [field]: { [operator]: value } },
  reason: 'comparison failed',
  consideredValue: 'secret',
})

test('a refused document is said by the field and the rule', () => {
  const said = 'Document failed validation: '
  const schema = {
    operatorName: '$jsonSchema',
    schemaRulesNotSatisfied: [
      {
        operatorName: 'required',
        specifiedAs: { required: ['title', 'meta'] },
        missingProperties: ['meta'],
      },
      {
        operatorName: 'properties',
        propertiesNotSatisfied: [
          {
            propertyName: 'title',
            details: [
              { operatorName: 'maxLength', specifiedAs: { maxLength: 9 }, reason: 'too long' },
            ],
          },
          {
            propertyName: 'url',
            details: [
              { operatorName: 'pattern', specifiedAs: { pattern: '^https' }, reason: 'no match' },
            ],
          },
        ],
      },
    ],
  }
  const or = {
    operatorName: '$or',
    clausesNotSatisfied: [{ index: 0, details: query('a', '$gt', 1) }],
  }
  for (const [details, words] of [
    [query('title', '$ne', 'bad'), '`sources.title` must not be "bad"'],
    [query('externalId', '$nin', ['a', 'b']), '`sources.externalId` must be none of "a", "b"'],
    [query('score', '$gte', 0), '`sources.score` must be at least 0'],
    [query('title', '$mod', [2, 0]), 'sources must meet {"title":{"$mod":[2,0]}}'],
    [
      schema,
      '`sources` must have "title", "meta", `sources.title` must have a length of at most 9, `sources.url` must match "^https"',
    ],
    [
      {
        ...or,
        clausesNotSatisfied: [
          ...or.clausesNotSatisfied,
          { index: 1, details: query('b', '$lt', 2) },
        ],
      },
      '`sources.a` must be more than 1, or `sources.b` must be less than 2',
    ],
    [
      { operatorName: '$nor', clausesSatisfied: [{ index: 0, details: query('a', '$eq', 1) }] },
      'sources must not meet {"a":{"$eq":1}}',
    ],
  ] as const) {
    assert.equal(reasonWords(refused(details)), said + words)
    // Viewers and groups have no values, but the rules.
    assert.equal(reasonWords(reasonGroupOf(refused(details))), said + words)
    assert.equal(reasonWords(`threads[3] "slack/C1": ${refused(details)}`), said + words)
  }
})

test('a reason without a rule stays as it is, but for what tells no reasons apart', () => {
  const large =
    'object to insert too large (code 10334 BSONObjectTooLarge, collection quotes, _id "a")'
  for (const [reason, words] of [
    [
      'Document failed validation (code 121 DocumentValidationFailure, collection quotes, _id "a")',
      'Document failed validation (quotes)',
    ],
    [large, 'object to insert too large (quotes)'],
    [
      refused({ operatorName: '$ne', specifiedAs: 'cut' }).slice(0, -20),
      'Document failed validation (sources)',
    ],
    ['Redis refused `complete`', 'Redis refused `complete`'],
    ['', '(no reason)'],
    ['must not be "abc\u202egnp", or so', 'must not be "abc\ufffdgnp", or so'],
  ] as const)
    assert.equal(reasonWords(reason), words)
})
