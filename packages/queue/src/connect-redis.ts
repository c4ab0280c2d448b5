import { Redis, type RedisOptions } from 'ioredis'

/** Told of each error of a connection, which goes on trying by itself. */
export type OnRedisError = (error: Error) => void

const backoff = (attempt: number) => Math.min(50 * 2 ** attempt, 500)

/** A replica that lost its primaryship refuses writes: connecting again finds the new primary. */
const reconnectOnError = (error: Error): false | 2 => (error.message.startsWith('READONLY') ? 2 : false)

/**
 * A connection for one who can't wait: commands fail at once while Redis is away, and within 1.5 s where it hangs.
 */
export function connectImpatient(url: string, onError: OnRedisError): Redis {
  return connect(
    url,
    { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 1_500, connectTimeout: 1_500 },
    onError,
  )
}

/** A connection for one who has time: commands wait until Redis is back, and may block. */
export function connectPatient(url: string, onError: OnRedisError): Redis {
  return connect(url, { maxRetriesPerRequest: null }, onError)
}

function connect(url: string, options: Omit<RedisOptions, 'replyMapping'>, onError: OnRedisError): Redis {
  const redis = new Redis(url, { ...options, retryStrategy: backoff, reconnectOnError })
  redis.on('error', onError)
  return redis
}
