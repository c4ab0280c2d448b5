// Tests of the forms in which programs write dates into mails.
import { expect, test } from 'vitest'
import { mailDate, separatorDate } from './mail-date.ts'

test.each([
  ['CEST', '08:00'],
  ['CET', '09:00'],
  ['cest', '08:00'],
  ['BST', '09:00'],
  ['JST', '01:00'],
  ['IST', '04:30'],
  ['PDT', '17:00'],
  ['EST5EDT', '14:00'],
  ['Europe/Berlin', '08:00'],
  ['GMT+2', '08:00'],
  ['GMT+0200', '08:00'],
  ['UTC+02:00', '08:00'],
  ['+02', '08:00'],
  ['+200', '08:00'],
  ['-0330', '13:30'],
  ['+0200 (CEST)', '08:00'],
  ['+0200 EDT', '08:00'],
  ['(CEST)', '08:00'],
  ['"CEST"', '08:00'],
  ['Z', '10:00'],
  ['XYZ', '10:00'],
  ['Mars/X1', '10:00'],
  ['', '10:00'],
])('10:00 %s is %s UTC, wherever the year stands', (zone, time) => {
  const expected = `2024-05-01T${time}:00.000Z`
  expect(mailDate(`Wed, 1 May 2024 10:00:00 ${zone}`)).toBe(expected)
  expect(mailDate(`Wed May  1 10:00:00 ${zone} 2024`)).toBe(expected)
  expect(mailDate(`2024-05-01T10:00:00${zone}`)).toBe(expected)
})

test.each([
  ['Wed, 1 May 124 10:00:00 +0000', '2024-05-01'],
  ['Wed, 1 May 2024 10.00.00 +0000', '2024-05-01'],
  ['2.5.2024 10:00:00', '2024-05-02'],
  ['Wed, 01-May-24 10:00:00 +0000', '2024-05-01'],
])('the day of %j is %s', (header, day) => {
  expect(mailDate(header)).toBe(`${day}T10:00:00.000Z`)
})

test.each([
  ['From ada Wed May  1 10:00:00 CEST 2024', '08:00'],
  ['From ada@a Wed, 1 May 2024 10:00:00 +0200', '08:00'],
  ['From - Wed May 01 2024 10:00:00', '10:00'],
  ['From ada@a 2024-05-01T10:00:00Z', '10:00'],
])('the date of %j is at %s', (separator, time) => {
  expect(separatorDate(separator)).toBe(`2024-05-01T${time}:00.000Z`)
})

test.each(['', 'From ', 'From -123', 'From ada@a.example', 'From - Thu Jan  1 00:00:00 1970'])(
  '%j has no date',
  (separator) => {
    expect(separatorDate(separator)).toBe(undefined)
  },
)
