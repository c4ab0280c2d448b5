// Describes the form of what a queue keeps in Redis: one line for each kind of key, field or
// element, without its values.
import type { Redis } from '@sluice/process/redis'

/** Keys whose elements are packed by Lua's cmsgpack, apart from some that are texts. */
const PACKED = /^(load|load:jobs)$/
const TEXTS = /^(ceiling|server|failed:.*)$/
const UNPACK = `
  local out = {}
  for _, text in ipairs(ARGV) do
    local kinds = {}
    for at, value in ipairs({cmsgpack.unpack(text)}) do kinds[at] = type(value) end
    out[#out + 1] = table.concat(kinds, ' ')
  end
  return out`

/** Ids, tokens, hashes, times and counts, wherever they stand in a name or a text. */
const VARIES = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{12,64}|[\w-]{43}|\d+/g

/** BullMQ's events, which only people read, and what lasts for moments. */
const LEFT_OUT = /:(events|stalled|stalled-check|lease:.*|bucket:.*)$/

/** Returns the sorted lines of a queue. */
export async function describeRedis(redis: Redis, queue: string): Promise<string[]> {
  const prefix = `{${queue}}:`
  const masked = (text: string) => text.replaceAll(queue, 'QUEUE').replace(VARIES, '#')
  const lines = new Set<string>()
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1_000)
    cursor = next
    for (const key of keys.filter((name) => !LEFT_OUT.test(name)))
      for (const line of await describeKey(redis, key, key.slice(prefix.length), masked))
        lines.add(line)
  } while (cursor !== '0')
  return [...lines].sort()
}

type Mask = (text: string) => string

async function describeKey(
  redis: Redis,
  key: string,
  name: string,
  masked: Mask,
): Promise<string[]> {
  const type = await redis.type(key)
  const about = `${masked(name)} ${type}`
  const own = name.replace(/^sluice:/, '')
  if (PACKED.test(own)) return describePacked(redis, key, about, masked)
  if (type === 'string') return [`${about} ${formOf((await redis.get(key)) ?? '')}`]
  if (type === 'list')
    return (await redis.lrange(key, 0, -1)).map((text) => `${about} ${formOf(text)}`)
  if (type === 'set') return (await redis.smembers(key)).map((text) => `${about} ${formOf(text)}`)
  if (type === 'zset')
    return (await redis.zrange(key, '0', '-1')).map((text) => `${about} ${formOf(text)}`)
  if (type === 'stream')
    return (await redis.xrange(key, '-', '+')).flatMap(([, fields]) => [
      `${about} ${fields.map(formOf).join(' ')}`,
    ])
  const fields = Object.entries(await redis.hgetall(key))
  if (own === 'processes:about')
    return fields.map(([field, text]) => `${about} ${masked(field)} ${withoutCounts(formOf(text))}`)
  // The counts of a minute are named after metrics.
  if (own.startsWith('minute:')) return [`${about} <count> ${formOf(fields[0]?.[1] ?? '')}`]
  return fields.map(([field, text]) => `${about} ${masked(field)} ${formOf(text)}`)
}

/** Readers of a process's counts ignore names that they do not know. */
function withoutCounts(form: string): string {
  return form.replaceAll(/\b(counts|lastMinute|recent):\{[^}]*\}/g, '$1:{<count>:number}')
}

async function describePacked(redis: Redis, key: string, about: string, masked: Mask) {
  const fields = Object.entries(await redis.hgetallBuffer(key))
  const kinds = Object(await redis.call('EVAL', UNPACK, '0', ...fields.map(([, packed]) => packed)))
  return fields.map(([field, text], at) => {
    const form = TEXTS.test(field) ? formOf(text.toString()) : `packed ${kinds[at]}`
    return `${about} ${masked(field)} ${form}`
  })
}

/** The form of a text: the names in JSON with the kinds of their values, `number`, or `text`. */
function formOf(text: string): string {
  if (/^-?\d+(\.\d+)?$/.test(text)) return 'number'
  if (!/^[[{]/.test(text)) return 'text'
  try {
    return formOfValue(JSON.parse(text))
  } catch {
    return 'text'
  }
}

function formOfValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${[...new Set(value.map(formOfValue))].join(' ')}]`
  if (typeof value !== 'object') return typeof value
  const fields = Object.entries(value).map(([name, inner]) => `${name}:${formOfValue(inner)}`)
  return `{${fields.sort().join(' ')}}`
}
