// Finds the places where a part of a key's random characters stands: Redis, MongoDB, or any text
// that a test collected.
import { Redis } from 'ioredis'
import type { Db } from 'mongodb'

/** A text in which no part of a key may stand, and where it comes from. */
export interface Evidence {
  where: string
  text: string
}

const PREFIX = 'slc_'
const RANDOM_CHARACTERS = 30
/** This number of equal characters in succession is no coincidence: 62 ** 8 is above 10 ** 14. */
const PART = 8

/** The places that hold a part of a key, each with the part. */
export function tracesOf(keys: readonly string[], evidence: readonly Evidence[]): string[] {
  return evidence.flatMap(({ where, text }) => {
    const part = keys.flatMap(partsOf).find((candidate) => text.includes(candidate))
    return part === undefined ? [] : [`${where}: …${excerpt(text, part)}…`]
  })
}

function partsOf(key: string): string[] {
  const random = key.slice(PREFIX.length, PREFIX.length + RANDOM_CHARACTERS)
  return Array.from({ length: RANDOM_CHARACTERS - PART + 1 }, (_, at) =>
    random.slice(at, at + PART),
  )
}

function excerpt(text: string, part: string): string {
  const at = text.indexOf(part)
  return text.slice(Math.max(0, at - 60), at + 60)
}

/** Everything that Redis holds for a queue: the names of its keys, and their values. */
export async function redisContents(url: string, queue: string): Promise<Evidence[]> {
  const redis = new Redis(url)
  try {
    const keys = await redis.keys(`*${queue}*`)
    return await Promise.all(
      keys.map(async (key) => ({
        where: `Redis ${key}`,
        text: `${key} ${JSON.stringify(await contentOf(redis, key))}`,
      })),
    )
  } finally {
    redis.disconnect()
  }
}

async function contentOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.hgetall(key)
    case 'list':
      return redis.lrange(key, 0, -1)
    case 'set':
      return redis.smembers(key)
    case 'zset':
      return redis.zrange(key, '0', '-1')
    case 'stream':
      return redis.xrange(key, '-', '+')
    default:
      return redis.get(key)
  }
}

/** Every document of a database. */
export async function mongodbContents(db: Db): Promise<Evidence[]> {
  const collections = await db.listCollections().toArray()
  return Promise.all(
    collections.map(async ({ name }) => ({
      where: `MongoDB ${name}`,
      text: JSON.stringify(await db.collection(name).find().toArray()),
    })),
  )
}
