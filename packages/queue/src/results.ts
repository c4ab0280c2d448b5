import type { Redis } from 'ioredis'
import { createEndJobs, type EndJobs, TOLD_MARK_MS } from './end-jobs.ts'
import { type Ending, parseEnding } from './ending.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/** The ending of each job, '' where there is none yet. KEYS: the queue's base; ARGV: job ids. */
const FIND_ENDINGS = `
local found = {}
for i, id in ipairs(ARGV) do
  found[i] = redis.call('GET', KEYS[1] .. 'result:' .. id) or redis.call('HGET', KEYS[1] .. 'kept:' .. id, 'ending') or ''
end
return found
`

/** The job's ending, or else a mark that its caller knows its id now, so that its result will be kept. KEYS: the base; ARGV: job id, ms to keep the mark. */
const TELL = `
local ending = redis.call('GET', KEYS[1] .. 'result:' .. ARGV[1]) or redis.call('HGET', KEYS[1] .. 'kept:' .. ARGV[1], 'ending')
if ending then return ending end
redis.call('SET', KEYS[1] .. 'told:' .. ARGV[1], 1, 'PX', ARGV[2])
return ''
`

/** A finished job as it is kept for the caller that knows its id. */
export interface KeptResult {
  ending: Ending
  /** The job's payload as it was enqueued. */
  data: string
  at: number
  attempts: number
}

/** Where jobs' results lie once BullMQ is done with them. */
export interface Results {
  end: EndJobs
  /** The endings of those jobs that have ended, by id. */
  find(ids: readonly string[]): Promise<Map<string, Ending>>
  /** The ending of a job, or nothing: then its id may be told, and its result will be kept. One step, so no ending falls between. */
  tell(id: string): Promise<Ending | undefined>
  /** What is kept for the caller that was told this id. */
  kept(id: string): Promise<KeptResult | undefined>
}

/** Keeps results in Redis, beside BullMQ: it prunes its finished set as a whole, and can't tell whose result is still waited for. */
export function createResults(redis: Redis, keys: QueueKeys): Results {
  const { base } = keys
  const findEndings = createScript(redis, FIND_ENDINGS)
  const tell = createScript(redis, TELL)
  return {
    end: createEndJobs(redis, keys),
    async find(ids) {
      const found = await findEndings(base, ...ids)
      const endings = new Map<string, Ending>()
      if (Array.isArray(found))
        ids.forEach((id, at) => void (found[at] && endings.set(id, parseEnding(String(found[at])))))
      return endings
    },
    async tell(id) {
      const ending = String(await tell(base, id, TOLD_MARK_MS))
      return ending === '' ? undefined : parseEnding(ending)
    },
    async kept(id) {
      const { ending, data, at, attempts } = await redis.hgetall(`${base}kept:${id}`)
      if (ending === undefined || data === undefined) return undefined
      return { ending: parseEnding(ending), data, at: Number(at), attempts: Number(attempts) }
    },
  }
}
