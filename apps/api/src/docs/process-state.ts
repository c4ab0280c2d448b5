// The routes that show the state of the process: its limits, and whether it can accept requests.
import { LIMIT_DETAILS, type LimitName, type LimitsAnswer } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import type { Handler } from '../request/request-context.ts'
import { apiSettings, IMPORT_LIMITS } from '../settings.ts'

/** The settings that bound the queue, and the keys without limits of their own. */
type BoundSetting = 'quotesPerSecond' | 'burstQuotes' | 'queueThreads' | 'queueBytes' | 'waitingSeconds' | 'tenantShare'

/** GET /limits: every bound that a request can meet, with its unit. */
export function getLimits({ limits }: Pick<ApiDeps, 'limits'>): Handler {
  const names = Object.keys(LIMIT_DETAILS) as LimitName[]
  const { importBytes, importItems } = IMPORT_LIMITS
  const ofSetting = (name: BoundSetting, unit: string) =>
    describeLimit(limits[name], { unit, description: apiSettings[name].description })
  const body: LimitsAnswer = {
    limits: {
      ...Object.fromEntries(names.map((name) => [name, describeLimit(limits[name], LIMIT_DETAILS[name])])),
      importBytes: describeLimit(limits.importBytes, importBytes),
      importItems: describeLimit(importItems.default, importItems),
    },
    quota: {
      quotesPerSecond: ofSetting('quotesPerSecond', 'quotes per second'),
      burstQuotes: ofSetting('burstQuotes', 'quotes'),
    },
    queue: {
      queueThreads: ofSetting('queueThreads', 'threads'),
      queueBytes: ofSetting('queueBytes', 'bytes'),
      waitingSeconds: ofSetting('waitingSeconds', 'seconds'),
      tenantShare: ofSetting('tenantShare', 'part'),
    },
    waitSeconds: {
      value: limits.waitSeconds,
      unit: 'seconds',
      description: 'The longest that a caller waits for its answer.',
    },
  }
  return async () => ({ status: 200, body })
}

function describeLimit(value: number, { unit, description }: { unit: string; description: string }) {
  return { value, unit, description }
}

const JSON_BODY = { 'content-type': 'application/json' }
const NOT_READY = { ...JSON_BODY, 'retry-after': '1' }

/** GET /readyz. A 503 has the media type of a 200, because it is no problem of the request. */
export function getReadiness({ readiness }: Pick<ApiDeps, 'readiness'>): Handler {
  return async () => {
    const state = await readiness()
    return { status: state.ready ? 200 : 503, body: state, headers: state.ready ? JSON_BODY : NOT_READY }
  }
}
