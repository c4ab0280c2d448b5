import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn, storedIn } from './support/read-reply.ts'
import { quoteFields, type SchemaField, sourceFields } from './support/schema-fields.ts'
import { type Body, someQuote, someThread } from './support/some-thread.ts'

type Row = [it: string, send: unknown, pointer: string, code: string]
type AtBound = [name: string, bound: number, make: (text: string) => Body, pointer: string]

const namesOf = (fields: readonly SchemaField[]) => fields.map(({ name }) => name)
const strings = namesOf(sourceFields.filter(({ isText }) => isText))
const quoteStrings = namesOf(quoteFields.filter(({ isText }) => isText))
const numbers = namesOf(sourceFields.filter(({ isNumber }) => isNumber))
const quoteNumbers = namesOf(quoteFields.filter(({ isNumber }) => isNumber))
const required = [...namesOf(sourceFields.filter(({ isRequired }) => isRequired)), 'quotes']

const missing: Row[] = [
  ...required.map(
    (name): Row => [
      `a source needs ${name}`,
      someThread({ [name]: undefined }),
      `/${name}`,
      'required',
    ],
  ),
  ...required.map(
    (name): Row => [
      `null is not a valid ${name}`,
      someThread({ [name]: null }),
      `/${name}`,
      'required',
    ],
  ),
  ...required
    .filter((name) => name !== 'quotes')
    .map(
      (name): Row => [
        `a blank ${name} is missing`,
        someThread({ [name]: ' \n\u3000' }),
        `/${name}`,
        'required',
      ],
    ),
  ['a quote needs text', someQuote({ text: undefined }), '/quotes/0/text', 'required'],
  ['null is not a valid text', someQuote({ text: null }), '/quotes/0/text', 'required'],
  ['a blank text is missing', someQuote({ text: '\ufeff' }), '/quotes/0/text', 'required'],
]

const types: Row[] = [
  ...[null, [], 'text', 7, true].map(
    (body): Row => [
      `${JSON.stringify(body)} is not a valid thread`,
      JSON.stringify(body),
      '',
      'type',
    ],
  ),
  ...strings.flatMap((name): Row[] => [
    [`a number is not a valid ${name}`, someThread({ [name]: 7 }), `/${name}`, 'type'],
    [`an object is not a valid ${name}`, someThread({ [name]: { $gt: '' } }), `/${name}`, 'type'],
  ]),
  ...quoteStrings.map(
    (name): Row => [
      `an array is not a valid ${name} of a quote`,
      someQuote({ [name]: ['a'] }),
      `/quotes/0/${name}`,
      'type',
    ],
  ),
  ...numbers.map(
    (name): Row => [
      `a numeral in a string is not a valid ${name}`,
      someThread({ [name]: '5' }),
      `/${name}`,
      'type',
    ],
  ),
  ...quoteNumbers.map(
    (name): Row => [
      `true is not a valid ${name} of a quote`,
      someQuote({ [name]: true }),
      `/quotes/0/${name}`,
      'type',
    ],
  ),
  ['an object is not a valid list of quotes', someThread({ quotes: {} }), '/quotes', 'type'],
  [
    'a string is not a valid quote',
    someThread({ quotes: [{ text: 'a' }, 'b'] }),
    '/quotes/1',
    'type',
  ],
  ['null is not a valid quote', someThread({ quotes: [null] }), '/quotes/0', 'type'],
]

const values: Row[] = [
  ['a service must be one of the list', someThread({ service: 'myspace' }), '/service', 'enum'],
  ['a service is spelt in lower case', someThread({ service: 'Slack' }), '/service', 'enum'],
  [
    'a name that every object has is not a valid service',
    someThread({ service: 'constructor' }),
    '/service',
    'enum',
  ],
  [
    '1e400 is beyond a double',
    '{"upVotes":1e400,"title":"a","externalId":"b","service":"x","quotes":[]}',
    '/upVotes',
    'not_finite',
  ],
  [
    '-1e400 is beyond a double',
    '{"title":"a","externalId":"b","service":"x","quotes":[{"text":"a","score":-1e400}]}',
    '/quotes/0/score',
    'not_finite',
  ],
  [
    'a lone surrogate is not a valid title',
    '{"title":"a\\ud800","externalId":"b","service":"x","quotes":[]}',
    '/title',
    'not_well_formed',
  ],
  [
    'a lone surrogate is not a valid text',
    '{"title":"a","externalId":"b","service":"x","quotes":[{"text":"\\udc00a"}]}',
    '/quotes/0/text',
    'not_well_formed',
  ],
  [
    'a __proto__ gives no title',
    '{"__proto__":{"title":"a"},"externalId":"b","service":"x","quotes":[]}',
    '/title',
    'required',
  ],
]

const dates = [
  '2024-02-30',
  '2023-02-29',
  '2024-13-01',
  '2024-00-10',
  '2024-05',
  '20240501',
  '2024-W18-3',
  '2024-122',
  '12/31/2024',
  'yesterday',
  '2024-05-01 10:00:00',
  '2024-05-01T24:00:00Z',
  '2024-05-01T10:60Z',
  '2024-05-01T10:00:60Z',
  '2024-05-01T10:00:00+2',
  '2024-05-01T10',
  '2024-05-01T10:00:00+02:60',
  ' 2024-05-01',
  '2024-05-01T',
  '+002024-05-01',
  '１９９９-01-01',
].flatMap((createdAt): Row[] => [
  [`${createdAt} is not a valid date of a source`, someThread({ createdAt }), '/createdAt', 'date'],
  [
    `${createdAt} is not a valid date of a quote`,
    someQuote({ createdAt }),
    '/quotes/0/createdAt',
    'date',
  ],
])

describe('a wrong field is refused with a pointer to it', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  for (const [it, send, pointer, code] of [...missing, ...types, ...values, ...dates]) {
    test(it, async () => {
      const { errors, total } = problemIn(await caller.post(send), 400, 'request_invalid')
      assert.deepEqual(
        errors?.map((error) => [error.pointer, error.code]),
        [[pointer, code]],
      )
      assert.equal(total, 1)
      assert.match(errors?.[0]?.message ?? '', /\w/)
    })
  }

  const atBound: AtBound[] = [
    ...sourceFields.flatMap(({ name, most }): AtBound[] =>
      most === undefined ? [] : [[name, most, (text) => someThread({ [name]: text }), `/${name}`]],
    ),
    ...quoteFields.flatMap(({ name, most }): AtBound[] =>
      most === undefined
        ? []
        : [
            [
              `${name} of a quote`,
              most,
              (text) => someQuote({ [name]: text }),
              `/quotes/0/${name}`,
            ],
          ],
    ),
  ]
  for (const [name, bound, make, pointer] of atBound) {
    test(`${name} has at most ${bound} code points`, async () => {
      storedIn(await caller.post(make('🎹'.repeat(bound))))
      const { errors } = problemIn(
        await caller.post(make('a'.repeat(bound + 1))),
        400,
        'request_invalid',
      )
      assert.partialDeepStrictEqual(errors, [{ pointer, code: 'too_long' }])
      assert.match(errors?.[0]?.message ?? '', new RegExp(`\\b${bound}\\b`))
    })
  }

  test('a thread has at most 10,000 quotes', async () => {
    const quotes = Array.from({ length: 10_001 }, (_, at) => ({ text: `q ${at}` }))
    const { errors } = problemIn(await caller.post(someThread({ quotes })), 400, 'request_invalid')
    assert.partialDeepStrictEqual(errors, [{ pointer: '/quotes', code: 'too_many' }])
    assert.match(errors?.[0]?.message ?? '', /\b10000\b/)
    assert.equal(
      storedIn(await caller.post(someThread({ quotes: quotes.slice(1) }))).quotes.length,
      10_000,
    )
  })

  test('all faults are reported at once', async () => {
    const { errors, total } = problemIn(
      await caller.post({ service: 'myspace', upVotes: '1', quotes: [{}] }),
      400,
      'request_invalid',
    )
    assert.deepEqual(errors?.map(({ pointer }) => pointer).sort(), [
      '/externalId',
      '/quotes/0/text',
      '/service',
      '/title',
      '/upVotes',
    ])
    assert.equal(total, 5)
  })

  test('at most 50 faults are listed, and all are counted', async () => {
    const { errors, total } = problemIn(
      await caller.post(someThread({ quotes: Array(60).fill({}) })),
      400,
      'request_invalid',
    )
    assert.equal(errors?.length, 50)
    assert.equal(total, 60)
  })

  test('nothing of a refused request is stored', async () => {
    const refused = someThread({ quotes: [{ text: 'good' }, {}] })
    problemIn(await caller.post(refused), 400, 'request_invalid')
    const { source, quotes } = storedIn(
      await caller.post({ ...refused, quotes: [{ text: 'good' }] }),
    )
    assert.deepEqual([source.outcome, quotes[0]?.outcome], ['created', 'created'])
  })
})
