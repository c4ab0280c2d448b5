import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createDateReader, numberIn, orderOf } from './written-values.ts'

const midnight = '2024-05-01T00:00:00.000Z'
const morning = '2024-05-01T09:30:00.000Z'

describe('A date in a table is read', () => {
  const clear: [text: string, date: string][] = [
    ['2024-05-01', midnight],
    ['2024/5/1', midnight],
    ['2024.05.01 9:30', morning],
    ['2024-05-01T09:30:00.123456+02:00', '2024-05-01T07:30:00.123Z'],
    ['2024-05-01 09:30 +02', '2024-05-01T07:30:00.000Z'],
    ['2024-05-01 09:30:00,5 UTC', '2024-05-01T09:30:00.500Z'],
    [' 1 May 2024 ', midnight],
    ['May 1, 2024 9:30 AM', morning],
    ['Wed, 01 May 2024 09:30:00 GMT', morning],
    ['Wednesday, May 1, 2024, 9:30\u202fam', morning],
    ['01/May/24 9:30 PM', '2024-05-01T21:30:00.000Z'],
    ['2024-05-01 12:05 a.m.', '2024-05-01T00:05:00.000Z'],
    ['2024. 5. 1. 오전 9:30', morning],
    ['2024/5/1 下午 9:30', '2024-05-01T21:30:00.000Z'],
    ['2024-05-01 9:30 μ.μ.', '2024-05-01T21:30:00.000Z'],
    ['Wed May 01 09:30:00 +0000 2024', morning],
    ['Wed May  1 11:30:00 +0200 2024', morning],
    ['Wed May  1 09:30:00 UTC 2024', morning],
    ['Wed May  1 09:30:00 2024', morning],
    ['Wed May 01 2024 11:30:00 GMT+0200 (Central European Summer Time)', morning],
    ['۱۴۰۳/۰۲/۱۲ ۹:۳۰', morning],
    ['1445/10/22 AH 9:30', morning],
    ['2024年5月1日 上午9:30', morning],
    ['2024년 5월 1일 오전 9:30', morning],
    ['令和6年5月1日', midnight],
    ['5 May 1403', '1403-05-05T00:00:00.000Z'],
    ['1714555800', morning],
    ['1714555800.5', '2024-05-01T09:30:00.500Z'],
    ['1714555800000', morning],
  ]
  for (const [text, date] of clear)
    it(`by itself: ${text}`, () => assert.equal(createDateReader({}).read(text), date))

  const ordered: [format: string, text: string, date: string][] = [
    ['D.M.Y', '01.05.2024', midnight],
    ['DD.MM.YYYY HH:mm', '01.05.2024, 9:30', morning],
    ['%d/%m/%Y', '1/5/2024', midnight],
    ['M/D/YY', '5/1/24 9:30 AM', morning],
    ['mm-dd-yyyy', '05-01-2024 09.30', morning],
    ['D.M.Y', '1. 5. 2024', midnight],
    ['D.M.Y', '01.05.2024.', midnight],
    ['D.M.Y', '1.5.2024 klo 9.30', morning],
    ['D.M.Y', '1.05.2024 г., 9:30', morning],
    ['D.M.Y', '٠١/٠٥/٢٠٢٤، ٩:٣٠', morning],
    ['D.M.Y', '09:30 01/05/2024', morning],
    ['D.M.Y', '1/5/2567 BE 9:30', morning],
    ['D.M.Y', '๑/๕/๒๕๖๗', midnight],
    ['D.M.Y', '2024-05-01T09:30:00Z', morning],
  ]
  for (const [dateFormat, text, date] of ordered)
    it(`by --date-format ${dateFormat}: ${text}`, () => {
      assert.equal(createDateReader({ dateFormat }).read(text), date)
    })

  it('in the zone of --timezone, unless it names its own', () => {
    const { read } = createDateReader({ timezone: 'Europe/Berlin', dateFormat: 'D.M.Y' })
    assert.equal(read('2024-05-01 09:30'), '2024-05-01T07:30:00.000Z')
    assert.equal(read('2024-05-01T09:30:00.25'), '2024-05-01T07:30:00.250Z')
    assert.equal(read('1.5.2024'), '2024-04-30T22:00:00.000Z')
    assert.equal(read('2024-05-01 09:30Z'), morning)
    assert.equal(read('1714555800'), morning)
    assert.equal(read('Wed May  1 11:30:00 2024'), morning)
    assert.equal(read('Wed May  1 09:30:00 +0000 2024'), morning)
  })

  it('only if it has one reading: the fault shows both', () => {
    const { read, faultOf } = createDateReader({})
    for (const text of [
      '01.05.2024',
      '5/1/2024',
      '13/1/2024',
      '20240501',
      '2024-02-30',
      '5/2024',
      'soon',
      '1,5',
    ])
      assert.equal(read(text), undefined, text)
    assert.equal(
      faultOf('5/1/2024 9:30'),
      'needs --date-format: 5/1/2024 9:30 is 2024-01-05 by --date-format D/M/Y, or 2024-05-01 by --date-format M/D/Y.',
    )
    for (const [text, calendar] of [
      ['1403/02/12', 'Persian or Islamic'],
      ['1403-02-12', 'Persian or Islamic'],
      ['1/5/2567', 'Buddhist'],
    ] as const) {
      assert.equal(read(text), undefined)
      assert.match(faultOf(text), new RegExp(`of the ${calendar} calendar`))
    }
    assert.equal(
      faultOf('13.1.2024'),
      'needs --date-format: 13.1.2024 is 2024-01-13 by --date-format D/M/Y.',
    )
    assert.equal(faultOf('soon'), 'is not a date, such as 2024-05-01T09:30:00Z: soon.')
  })
})

describe('A number in a table', () => {
  const numbers: [text: string, number: number | undefined][] = [
    ['12', 12],
    ['-1.5', -1.5],
    ['1e3', 1000],
    ['1.234', 1.234],
    ['4,5', 4.5],
    ['-0,125', -0.125],
    ['1,2345', 1.2345],
    ['1,234.5', 1234.5],
    ['1.234,5', 1234.5],
    ['1,234,567', 1_234_567],
    ['1.234.567', 1_234_567],
    ['1\u202f234,5', 1234.5],
    ['1,234', undefined],
    ['12 %', undefined],
    ['many', undefined],
    ['', undefined],
  ]
  for (const [text, number] of numbers)
    it(`${text} is ${number}`, () => assert.equal(numberIn(text), number))
})

it('A date format names a day, a month and a year', () => {
  assert.deepEqual(orderOf('YYYY-MM-DDTHH:mm:ss'), ['y', 'm', 'd'])
  for (const format of ['', 'D.M', 'iso', 'HH:mm', 'D.D.Y'])
    assert.equal(orderOf(format), undefined, format)
})
