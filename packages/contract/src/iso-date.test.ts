import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { parseIsoDate } from './field-values.ts'

const accepted: [text: string, moment: string, rule: string][] = [
  ['2024-05-01', '2024-05-01T00:00:00.000Z', 'a full date is midnight UTC'],
  ['2024-05-01T09:30:15Z', '2024-05-01T09:30:15.000Z', 'Z is UTC'],
  ['2024-05-01T09:30:15', '2024-05-01T09:30:15.000Z', 'no offset is UTC'],
  ['2024-05-01T09:30', '2024-05-01T09:30:00.000Z', 'seconds may be missing'],
  ['2024-05-01T09:30Z', '2024-05-01T09:30:00.000Z', 'seconds may be missing before Z'],
  ['2024-05-01T09:30+02', '2024-05-01T07:30:00.000Z', 'an offset may be hours alone'],
  ['2024-05-01T09:30:15+0530', '2024-05-01T04:00:15.000Z', 'an offset may have no colon'],
  ['2024-05-01T09:30:15-05:30', '2024-05-01T15:00:15.000Z', 'an offset to the west is added'],
  ['2024-05-01T09:30:15+00:00', '2024-05-01T09:30:15.000Z', 'an offset may be zero'],
  ['2024-05-01T09:30:15.1Z', '2024-05-01T09:30:15.100Z', 'one decimal is tenths'],
  ['2024-05-01T09:30:15,25Z', '2024-05-01T09:30:15.250Z', 'the decimal sign may be a comma'],
  ['2024-05-01T09:30:15.123456', '2024-05-01T09:30:15.123Z', "Python's isoformat is read"],
  [
    '2024-12-31T23:59:59.9999999Z',
    '2024-12-31T23:59:59.999Z',
    'decimals past the third are cut off, not rounded',
  ],
  [
    '2024-12-31T23:30:00-01:00',
    '2025-01-01T00:30:00.000Z',
    'an offset can lead into the next year',
  ],
  ['2024-03-01T00:30:00+01:00', '2024-02-29T23:30:00.000Z', 'an offset can lead into a leap day'],
  ['2000-02-29', '2000-02-29T00:00:00.000Z', 'a fourth century year is a leap year'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z', 'the first day of the year 1 is in range'],
  ['0099-12-31T23:00-02:00', '0100-01-01T01:00:00.000Z', 'the first century is not the twentieth'],
  [
    '9999-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59.999Z',
    'the last moment of the year 9999 is in range',
  ],
]

const refused: [text: string, rule: string][] = [
  ['2024-02-30', 'a day that its month has not'],
  ['2023-02-29', 'a leap day of another year'],
  ['1900-02-29', 'a leap day of a century'],
  ['2024-04-31', 'the 31st of a short month'],
  ['2024-13-01', 'a thirteenth month'],
  ['2024-00-10', 'a month 0'],
  ['2024-05-00', 'a day 0'],
  ['2024-05-01T24:00:00Z', '24:00'],
  ['2024-05-01T23:59:60Z', 'a leap second'],
  ['2024-05-01T23:60Z', 'a minute 60'],
  ['2024-05-01 09:30', 'a space for the T'],
  ['2024-05-01t09:30z', 'small letters'],
  ['2024-05-01T09', 'an hour alone'],
  ['2024-05-01T09:30.5Z', 'decimals of a minute'],
  ['2024-05-01T09:30:15.Z', 'a decimal sign without decimals'],
  ['2024-05-01Z', 'an offset without a time'],
  ['2024-05-01T09:30+2', 'an offset of one digit'],
  ['2024-05-01T09:30+24:00', 'an offset of a day'],
  ['2024-05-01T09:30+02:60', 'an offset of 60 minutes'],
  ['2024-05', 'a month alone'],
  ['20240501', 'the basic form'],
  ['2024-W18-3', 'a week date'],
  ['2024-122', 'an ordinal date'],
  ['+002024-05-01', 'a year of six digits'],
  ['0000-12-31', 'the year 0'],
  ['0001-01-01T00:00+00:01', 'a moment before the year 1 in UTC'],
  ['0000-12-31T23:59-00:01', 'the year 0 with an offset that leads out of it'],
  ['9999-12-31T23:59:59.999-00:01', 'a moment after the year 9999 in UTC'],
  ['1714552200000', 'a number'],
  [' 2024-05-01', 'a space before'],
  ['2024-05-01\n', 'a line feed after'],
  ['２０２４-05-01', 'digits beyond ASCII'],
  ['2024-05-01T09:30:00\u221202:00', 'a minus sign beyond ASCII'],
]

describe('a date', () => {
  for (const [text, moment, rule] of accepted)
    it(`${rule}: ${text}`, () => assert.equal(parseIsoDate(text), moment))
  for (const [text, rule] of refused)
    it(`is not ${rule}: ${text}`, () => assert.equal(parseIsoDate(text), undefined))

  it('is the moment of the calendar, at any offset', () => {
    fc.assert(fc.property(moments, offsets, sameAsCalendar), { numRuns: 5_000 })
  })

  it('is unchanged when it is read again', () => {
    fc.assert(
      fc.property(moments, (date) =>
        assert.equal(parseIsoDate(date.toISOString()), date.toISOString()),
      ),
    )
  })
})

const moments = fc.date({
  min: new Date('0001-01-03T00:00:00Z'),
  max: new Date('9999-12-29T00:00:00Z'),
  noInvalidDate: true,
})
const offsets = fc.integer({ min: -1439, max: 1439 })

function sameAsCalendar(moment: Date, offsetMinutes: number): void {
  const local = new Date(moment.getTime() + offsetMinutes * 60_000).toISOString().slice(0, -1)
  const [hours, minutes] = [Math.floor(Math.abs(offsetMinutes) / 60), Math.abs(offsetMinutes) % 60]
  const offset = `${offsetMinutes < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`
  assert.equal(parseIsoDate(local + offset), moment.toISOString())
}
