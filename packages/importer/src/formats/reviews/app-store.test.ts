import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { appStoreFormat } from './app-store.ts'

const review = {
  type: 'customerReviews',
  id: '00000012-a',
  attributes: {
    rating: 2,
    title: 'Slow',
    body: 'It takes its time.',
    reviewerNickname: 'ada',
    createdDate: '2024-05-01T02:30:00-07:00',
    territory: 'USA',
  },
  relationships: { response: { data: { type: 'customerReviewResponses', id: 'r1' } } },
}
const reply = {
  type: 'customerReviewResponses',
  id: 'r1',
  attributes: {
    responseBody: 'We are on it.',
    lastModifiedDate: '2024-05-02T00:00:00Z',
    state: 'PUBLISHED',
  },
}
const file = (...pages: unknown[]) =>
  inputFile('reviews.json', pages.map((page) => JSON.stringify(page)).join('\n'))
const page = {
  data: [review],
  included: [reply],
  links: { next: 'n' },
  meta: { paging: { total: 1 } },
}

describe('an App Store review', () => {
  it('is a source with its text as a quote', async () => {
    const { pieces } = await readAll(appStoreFormat, [file({ data: [review] })])
    const createdAt = '2024-05-01T09:30:00.000Z'
    assert.deepEqual(pieces, [
      {
        kind: 'piece',
        service: 'app_store',
        externalId: '00000012-a',
        order: createdAt,
        fields: { title: 'Slow', description: '★★☆☆☆', createdAt },
        quotes: [
          { text: 'It takes its time.', externalId: '00000012-a', speaker: 'ada', createdAt },
        ],
        place: { path: 'reviews.json', line: 1, pointer: '/data/0' },
      },
    ])
  })

  it("has the developer's reply as a quote, whichever of the two names the other", async () => {
    const { relationships: _, ...alone } = review
    const named = {
      ...reply,
      relationships: { review: { data: { type: 'customerReviews', id: review.id } } },
    }
    for (const content of [page, { data: [alone], included: [named] }]) {
      const { pieces } = await readAll(appStoreFormat, [file(content)])
      assert.equal(pieces[1]?.externalId, review.id)
      assert.deepEqual(pieces[1]?.quotes, [
        {
          text: 'We are on it.',
          externalId: 'r1',
          speaker: 'Developer',
          replyingTo: review.id,
          createdAt: '2024-05-02T00:00:00.000Z',
        },
      ])
    }
  })

  it('is read from pages that follow each other, are listed, or hold only one', async () => {
    const contents = [
      file(page, page),
      file([page, page]),
      file([review, reply]),
      file({ data: review }, page),
    ]
    const found = await Promise.all(contents.map((content) => readAll(appStoreFormat, [content])))
    assert.deepEqual(
      found.map(({ pieces, rejected }) => [pieces.length, rejected.length]),
      [
        [4, 0],
        [4, 0],
        [2, 0],
        [3, 0],
      ],
    )
  })

  it('is rejected without words and rating, as is what is no record; records of other types are counted', async () => {
    const { rejected, notes } = await readAll(appStoreFormat, [
      file([{ ...review, attributes: {} }, reply, { type: 'apps', id: '1' }, 7]),
    ])
    assert.deepEqual(
      rejected.map(({ place }) => place.pointer),
      ['/0', '/3'],
    )
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['records other than reviews and replies'],
    )
  })

  it('is recognised by its members', async () => {
    for (const content of [page, [page], [review], review, { data: review }])
      assert.ok(await recognises(appStoreFormat, file(content)))
    assert.ok(!(await recognises(appStoreFormat, file({ data: [{ id: 1 }] }))))
  })
})
