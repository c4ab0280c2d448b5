// A day of a service as users have it, on the dashboard: the pictures of README.md and of the
// documents.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createKey } from '@sluice/credentials/keys'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl } from '@sluice/test-support'
import { test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { mongodbCan } from '../support/mongodb-can.ts'
import { startSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { createCaller } from './support/caller.ts'
import { inspect, SCREENSHOTS } from './support/dashboard-visitor.ts'
import { openOnCall } from './support/on-call.ts'
import { acceptedIn, jobIn, storedIn } from './support/read-reply.ts'

const DAY_MINUTES = 1_440
const MINUTE_MS = 60_000
const CONVERSATIONS = {
  slack: [
    'Could the editor have a dark mode?',
    'The export to CSV drops the last column',
    'How do we invite guests?',
  ],
  zendesk: ['Invoice of March is missing', 'Refund for order 4711', 'Login by SSO fails on Safari'],
  reddit: ['What do you use instead of spreadsheets?', 'Sluice or a queue of my own?'],
  app_store: ['Crashes since the update', 'Best app for reading on the train'],
  email: ['Re: your offer of 12 May', 'Change of our billing address'],
} as const
const LOOKS =
  SCREENSHOTS === undefined
    ? ([['dark', 390]] as const)
    : ([
        ['light', 1280],
        ['dark', 1280],
        ['light', 390],
      ] as const)

const TIMED = ['', 'inQueue:', 'inStore:'].flatMap((part) => [`${part}interactive`, `${part}bulk`])

/** Reproducible noise between 0 and 1. */
const noise = (at: number) => Math.abs(Math.sin(at * 12.9898) * 43_758.5453) % 1

/**
 * Counts of a minute: busy by day, an import at night, and an outage of MongoDB of three minutes.
 */
function minuteOf(at: number, minutesAgo: number) {
  const hour = (at / 60) % 24
  const byDay = Math.max(Math.sin(((hour - 7) / 14) * Math.PI), 0)
  const isImport = hour >= 2 && hour < 2.8
  const isUnavailable = minutesAgo >= 313 && minutesAgo < 316
  const accepted = Math.round(60 * (3 + 42 * byDay + (isImport ? 70 : 0)) * (0.8 + 0.4 * noise(at)))
  const stored = isUnavailable ? 0 : accepted
  const slow = isUnavailable ? 40 : 1 + byDay + noise(at + 7)
  return {
    counts: {
      ...{
        covered: MINUTE_MS,
        accepted,
        refused: isUnavailable ? 210 : 0,
        timedOut: isUnavailable ? 96 : 0,
      },
      failed: minutesAgo % 167 === 41 ? 3 : 0,
      ...{
        'stored:created': Math.round(stored * 0.7),
        'stored:unchanged': Math.round(stored * 0.2),
      },
      'stored:updated': stored - Math.round(stored * 0.7) - Math.round(stored * 0.2),
      'waiting:interactive': isUnavailable ? 420 : Math.round(9 * byDay * (0.5 + noise(at))),
      'waiting:bulk': isImport ? Math.round(2_400 * noise(at)) : Math.round(30 * noise(at + 3)),
      ...(isUnavailable && { away: 60 }),
      ...Object.fromEntries(TIMED.map((timed) => [`longest:${timed}`, 90])),
    },
    // The bins of about 20 ms and 0.3 s: see durations.ts.
    durations: {
      ...{ interactive: binsAt(15 + slow * 3, accepted), bulk: binsAt(28 + slow * 3, accepted) },
      ...{
        'inQueue:interactive': binsAt(8 + slow, accepted),
        'inStore:interactive': binsAt(14 + slow * 3, accepted),
      },
      ...{
        'inQueue:bulk': binsAt(26 + slow * 3, accepted),
        'inStore:bulk': binsAt(22 + slow, accepted),
      },
    },
  }
}

function binsAt(bin: number, count: number): number[] {
  return Array.from({ length: Math.round(bin) + 6 }, (_, at) =>
    at < bin - 6 ? 0 : Math.round(count / (1 + (at - bin) ** 2)),
  )
}

const lacks = mongodbCan.refuseByValidator ? needs('chromium') : { skip: true }

test(
  'a day of load: charts with ticks, marks and links, lanes with their menu, and what failed',
  lacks,
  async (t) => {
    const sluice = await startSluice(t, { workers: 2 })
    const keys = queueKeys(sluice.settings.QUEUE ?? '')
    const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
    t.onTestFinished(() => redis.disconnect())
    await once(redis, 'ready')
    const now = Math.floor(Date.now() / MINUTE_MS)
    const day = redis.pipeline()
    // Also the minutes of the test.
    for (let minutesAgo = -3; minutesAgo < DAY_MINUTES; minutesAgo++) {
      const { counts, durations } = minuteOf(now - minutesAgo, minutesAgo)
      day.hset(`${keys.base}minute:${now - minutesAgo}`, counts)
      day.set(`${keys.base}minute:${now - minutesAgo}:durations`, JSON.stringify(durations))
    }
    await day.exec()
    const { key } = await createKey(sluice.db, { tenant: 'globex', name: 'support inbox' })
    await untilKeyIsKnown(sluice.url, key)
    const callers = [createCaller(sluice), createCaller({ url: sluice.url, key })]
    const post = async (place: number, service: string, title: string, prefer = '') => {
      const quotes = [
        {
          externalId: 'm1',
          speaker: 'Ada',
          text: `${title} I have looked everywhere.`,
          createdAt: '2024-05-01T09:30:00Z',
        },
        {
          externalId: 'm2',
          speaker: 'Grace',
          text: 'Thank you, we look into it.',
          createdAt: '2024-05-01T09:52:00Z',
        },
      ]
      const thread = { service, externalId: `${service}-${4_200 + place}`, title, quotes }
      return callers[place % 2]?.post(thread, { prefer }) ?? assert.fail()
    }
    const all = Object.entries(CONVERSATIONS).flatMap(([service, titles]) =>
      titles.map((title) => [service, title] as const),
    )
    for (const [place, [service, title]] of all.entries())
      storedIn(await post(place, service, title))
    for (const [place, [service, title]] of all.slice(0, 4).entries())
      storedIn(await post(place, service, `${title}!`))
    const onCall = await openOnCall(t, sluice)
    const { page } = onCall
    await onCall.runSluice('pause', 'bulk', '--why', 'MongoDB is being upgraded')
    await onCall.runSluice('resume', 'bulk')

    // A rule that people set.
    const validator = { title: { $ne: 'Untitled' } }
    await sluice.db.command({ collMod: 'sources', validator })
    const failed: string[] = []
    for (const [at, service] of ['zendesk', 'zendesk', 'slack', 'email'].entries()) {
      const reply = await post(100 + at, service, 'Untitled', 'respond-async')
      acceptedIn(reply)
      failed.push(reply.headers.get('location') ?? '')
    }
    for (const [at, path] of failed.entries()) {
      const caller = callers[at % 2] ?? assert.fail()
      assert.equal(jobIn(await caller.get(path, { prefer: 'wait=30' })).state, 'failed')
    }

    const show = async (name: string, path: string) => {
      for (const [colorScheme, width] of LOOKS) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 800 })
        await page.goto(onCall.url + path)
        const tooWide = Number(
          await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
        )
        assert(tooWide <= 0, `${name} at ${width}: ${tooWide}`)
        await inspect({ page, faults: onCall.faults }, `${name} ${colorScheme} ${width}`)
      }
    }
    /** Takes the picture of a document: the top of a page. */
    const picture = async (name: string, colorScheme: 'light' | 'dark', height: number) => {
      if (SCREENSHOTS === undefined) return
      // Once no thread has failed for ten seconds.
      await page.getByText('for an operator').waitFor()
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width: 1280, height })
      await page.screenshot({ path: `${SCREENSHOTS}/docs/${name}.png` })
    }
    await show('failures', '/failures')
    await page.goto(`${onCall.url}/failures`)
    await page.locator('#groups a').first().click()
    await page.getByText('Discard …').waitFor()
    await show('group', new URL(page.url()).pathname)
    await picture('dashboard-failures', 'dark', 660)
    await show('failed job', failed[0] ?? '')
    await show('thread', '/thread?tenant=acme&service=slack&externalId=slack-4200')
    await picture('dashboard-thread', 'light', 960)
    await show('hour', '/overview')
    await show('day', '/overview?span=24+h')
    await picture('dashboard', 'light', 1000)
    await picture('dashboard-dark', 'dark', 1000)
    assert.deepEqual(onCall.faults, [])
  },
)
