// The part of the verdict that is about what callers get.
import { alive, type Facts, type Findings, finding, RECENT_SECONDS, shown, THRESHOLDS } from './finding.ts'

const SHOWN_REASONS = 3

/** Finds requests that were refused for lack of capacity, and callers that waited in vain, lately. */
export function* judgeCallers({ processes }: Facts): Findings {
  const recent = alive(processes, 'api').flatMap(({ recent = {} }) => Object.entries(recent))
  const sums = new Map<string, number>()
  for (const [name, count] of recent) sums.set(name, (sums.get(name) ?? 0) + count)
  const sumOf = (name: string) => sums.get(name) ?? 0
  const late = sumOf('timedOut')
  const waited = late + sumOf('answered')
  const inVain = `${share(late, waited)} of the callers that waited got no result in time, in the last ${RECENT_SECONDS} s`
  if (late > waited * THRESHOLDS.timedOutShare) yield finding('callers_time_out', inVain, '/jobs?state=waiting')
  const [refused, requests] = [sumOf('refused'), sumOf('requests')]
  if (refused <= requests * THRESHOLDS.refusedShare) return
  const reasons = [...sums]
    .filter(([name]) => name.startsWith('refused:'))
    .sort(([, one], [, other]) => other - one)
    .slice(0, SHOWN_REASONS)
    .map(([name]) =>
      name.replace(/^refused:([^:]*):(.*)$/s, (_, code, tenant) => (tenant ? `${code} (${tenant})` : code)),
    )
  const text = `${share(refused, requests)} of the requests of the last ${RECENT_SECONDS} s were refused: ${reasons.join(', ')}`
  yield finding('requests_refused', text, '/overview#tenants')
}

/** Makes for example `67 % (2 of 3)`: people see whether that is many. */
const share = (part: number, all: number) =>
  `${Math.ceil((part / all) * 100)} % (${shown(part)} of ${shown(Math.max(all, part))})`
