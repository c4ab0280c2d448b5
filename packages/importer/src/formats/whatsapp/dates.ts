// The dates of a WhatsApp export, whose form is that of the phone's region.
import { DAY_CHARACTERS } from '../values/iso-date.ts'
import type { Line } from './lines.ts'

/** The order of year, month and day. */
export type Order = (typeof ORDERS)[number]
const ORDERS = ['DMY', 'MDY', 'YMD'] as const

const HALF_DAY = 12
const HALVES = /[ap]\.?.?m\.?$|[πμ]\.μ\.$|上午|下午|午前|午後|오전|오후/i
const SECOND_HALF = /p\.?.?m\.?$|μ\.μ\.$|下午|午後|오후/i

/**
 * Finds the order in which most dates of a file are valid and ascend, because messages do. If two orders fit alike, a
 * clock with am and pm stands for the one of America.
 */
export async function orderOfDates(
  lists: AsyncIterable<readonly Line[]>,
): Promise<{ order: Order; isAssumed: boolean }> {
  const readings = ORDERS.map((order) => ({ order, last: '', faults: 0 }))
  let hasHalfDays = false
  for await (const lines of lists)
    for (const { date } of lines) {
      if (date === undefined) continue
      hasHalfDays ||= /m\.?$/i.test(date)
      for (const reading of readings) {
        const day = readDate(date, reading.order)?.slice(0, DAY_CHARACTERS)
        if (day === undefined || day < reading.last) reading.faults += 1
        reading.last = day ?? reading.last
      }
    }
  const least = Math.min(...readings.map(({ faults }) => faults))
  const fitting = readings.filter(({ faults }) => faults === least).map(({ order }) => order)
  const order = hasHalfDays && fitting.includes('MDY') ? 'MDY' : (fitting[0] ?? 'DMY')
  return { order, isAssumed: fitting.length > 1 }
}

/** Reads a date as a local time, such as `2024-05-01T09:30:00`. Undefined if it is impossible in this order. */
export function readDate(text: string, order: Order): string | undefined {
  const numbers = text.match(/\d+/g) ?? []
  const [one = '', two = '', three = '', hour = '', minute = '', second = '00'] = numbers
  const [year = '', month = '', day = ''] = { YMD: [one, two, three], DMY: [three, two, one], MDY: [three, one, two] }[
    order
  ]
  const isYear = year.length === 4 || (year.length === 2 && order !== 'YMD')
  // No region writes the month first with full stops.
  if (!isYear || month.length > 2 || day.length > 2 || (order === 'MDY' && /^\d+\./.test(text))) return undefined
  const isHalf = HALVES.test(text)
  const hours = isHalf ? (Number(hour) % HALF_DAY) + (SECOND_HALF.test(text) ? HALF_DAY : 0) : Number(hour)
  const pad = (value: number | string) => String(value).padStart(2, '0')
  const date = `${year.length === 2 ? `20${year}` : year}-${pad(month)}-${pad(day)}`
  const local = `${date}T${pad(hours)}:${minute}:${second}`
  const moment = new Date(`${local}Z`)
  return Number.isNaN(moment.getTime()) || moment.toISOString().slice(0, DAY_CHARACTERS) !== date ? undefined : local
}
