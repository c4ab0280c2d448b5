import { Pool } from 'undici'

/** Posts threads with little CPU time: it shares two cores with the measured processes. */
export interface Poster {
  /** Resolves with the status at the end of the answer; 0 if the connection failed. */
  post(body: Buffer): Promise<number>
  close(): Promise<void>
}

/**
 * Posts to these replicas in turn, over `connections` open connections in all. `prefer` is the
 * header of this name.
 */
export function createPoster(
  urls: readonly string[],
  key: string,
  connections: number,
  prefer?: string,
): Poster {
  const each = Math.ceil(connections / urls.length)
  const pools = urls.map(
    (url) => new Pool(url, { connections: each, headersTimeout: 120_000, bodyTimeout: 120_000 }),
  )
  const headers = {
    'x-api-key': key,
    'content-type': 'application/json',
    ...(prefer !== undefined && { prefer }),
  }
  let posted = 0
  return {
    post(body) {
      const pool = pools[posted++ % pools.length]
      return pool === undefined ? Promise.resolve(0) : postBy(pool, headers, body)
    },
    close: async () => void (await Promise.all(pools.map((pool) => pool.close()))),
  }
}

/** Lower-level than `pool.request`, which makes a stream for each answer. */
function postBy(pool: Pool, headers: Record<string, string>, body: Buffer): Promise<number> {
  return new Promise((resolve) => {
    let status = 0
    pool.dispatch(
      { method: 'POST', path: '/sources', headers, body },
      {
        onRequestStart() {},
        onResponseStart(_, statusCode) {
          status = statusCode
        },
        onResponseData() {},
        onResponseEnd: () => resolve(status),
        onResponseError: () => resolve(0),
      },
    )
  })
}
