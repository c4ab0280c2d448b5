import { InvalidArgumentError } from 'commander'

const UNIT_SECONDS = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
  ['w', 604_800],
])

/** Seconds in a duration such as `30m`, `24h` or `90d`; `undefined` for any other text. */
export function durationSeconds(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const seconds = UNIT_SECONDS.get(unit)
  return seconds === undefined ? undefined : Number(count) * seconds
}

/** The same for an option of the command line; throws commander's InvalidArgumentError. */
export function parseDuration(text: string): number {
  const seconds = durationSeconds(text)
  if (seconds === undefined) throw new InvalidArgumentError('It is a number and a unit: 30m, 24h, 90d, 2w.')
  return seconds
}
