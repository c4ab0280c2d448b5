import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { playFormat } from './play.ts'

const review = {
  'Package Name': 'com.example.sluice',
  'App Version Name': '1.2',
  'Reviewer Language': 'de',
  Device: 'walleye',
  'Review Submit Date and Time': '2024-05-01T09:30:00Z',
  'Review Submit Millis Since Epoch': '1714555800000',
  'Review Last Update Date and Time': '2024-05-03T09:30:00Z',
  'Review Last Update Millis Since Epoch': '1714728600000',
  'Star Rating': '4',
  'Review Title': '',
  'Review Text': 'Größer, als ich dachte.\nUnd "schneller".',
  'Developer Reply Date and Time': '2024-05-04T00:00:00Z',
  'Developer Reply Millis Since Epoch': '1714780800000',
  'Developer Reply Text': 'Danke!',
  'Review Link':
    'https://play.google.com/console/developers/1/app/2/user-feedback/review-details?reviewId=gp%3AAOq1&corpus=PUBLIC_REVIEWS',
}
const rating = {
  ...review,
  'Review Text': '',
  'Developer Reply Date and Time': '',
  'Developer Reply Millis Since Epoch': '',
  'Developer Reply Text': '',
  'Review Link': '',
}

function csv(...rows: Record<string, string>[]) {
  const lines = [Object.keys(review), ...rows.map((row) => Object.values(row))]
  const text = lines
    .map((fields) => fields.map((field) => `"${field.replaceAll('"', '""')}"`).join(','))
    .join('\r\n')
  return inputFile(
    'reviews_com.example.sluice_202405.csv',
    Buffer.from(`\ufeff${text}\r\n`, 'utf16le'),
  )
}

describe('a Google Play review', () => {
  it('is a source with the text and the reply as quotes, identified by its link', async () => {
    const { pieces } = await readAll(playFormat, [csv(review)])
    const createdAt = '2024-05-01T09:30:00.000Z'
    const text = review['Review Text']
    assert.deepEqual(pieces, [
      {
        kind: 'piece',
        service: 'play_store',
        externalId: 'gp:AOq1',
        order: '2024-05-03T09:30:00.000Z',
        fields: {
          title: 'Größer, als ich dachte.',
          description: '★★★★☆',
          createdAt,
          channelId: 'com.example.sluice',
        },
        quotes: [
          { text, externalId: 'gp:AOq1', createdAt },
          {
            text: 'Danke!',
            externalId: 'gp:AOq1/reply',
            speaker: 'Developer',
            replyingTo: 'gp:AOq1',
            createdAt: '2024-05-04T00:00:00.000Z',
          },
        ],
        place: { path: 'reviews_com.example.sluice_202405.csv', line: 2 },
      },
    ])
  })

  it('has the title that it was given', async () => {
    const { pieces } = await readAll(playFormat, [csv({ ...review, 'Review Title': 'Toll' })])
    assert.equal(pieces[0]?.fields.title, 'Toll')
  })

  it('is found in links of the older console too', async () => {
    const old =
      'https://play.google.com/apps/publish?account=1#ReviewDetailsPlace:p=com.example&reviewid=gp:AOq2'
    const { pieces } = await readAll(playFormat, [csv({ ...review, 'Review Link': old })])
    assert.equal(pieces[0]?.externalId, 'gp:AOq2')
  })

  it('without a text has its stars in the title, no quotes, and package, moment and device as its id', async () => {
    const { pieces } = await readAll(playFormat, [csv(rating, { ...rating, 'Star Rating': '1' })])
    assert.deepEqual(
      pieces.map(({ externalId, fields, quotes }) => [
        externalId,
        fields.title,
        fields.description,
        quotes,
      ]),
      [
        ['com.example.sluice:1714555800000:walleye', '★★★★☆', undefined, []],
        ['com.example.sluice:1714555800000:walleye', '★☆☆☆☆', undefined, []],
      ],
    )
  })

  it('is rejected without an id, or with neither text nor rating', async () => {
    const none = { ...rating, 'Review Submit Millis Since Epoch': '' }
    const { rejected } = await readAll(playFormat, [csv(none, { ...rating, 'Star Rating': '' })])
    assert.deepEqual(
      rejected.map(({ reason, place }) => [reason, place.line]),
      [
        ['The review has neither a link nor a package and a moment of submission.', 2],
        ['The review has neither a text nor a rating.', 3],
      ],
    )
  })

  it('is recognised by the columns of its file', async () => {
    assert.ok(await recognises(playFormat, csv(review)))
    assert.ok(!(await recognises(playFormat, inputFile('a.csv', 'id,Star Rating\n'))))
  })

  it('without text has the moment of its date, if Excel rounded the milliseconds', async () => {
    const rounded = { ...rating, 'Review Submit Millis Since Epoch': '1.71456E+12' }
    const { pieces } = await readAll(playFormat, [csv(rounded)])
    assert.equal(pieces[0]?.externalId, 'com.example.sluice:1714555800000:walleye')
    assert.equal(pieces[0]?.fields.createdAt, '2024-05-01T09:30:00.000Z')
  })
})
