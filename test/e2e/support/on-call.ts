// An engineer on call: a browser on the overview, the API's overview and `sluice status`, each
// asked for the verdict.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Status } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { createSessions } from '@sluice/credentials/sessions'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { startProcess, type TestScope } from '@sluice/test-support'
import { chromium, type Page } from 'playwright-core'
import { findChromium } from '../../runner/programs.ts'
import { runSluice } from '../../support/run-sluice.ts'
import { type TestSluice, untilKeyIsKnown } from '../../support/start-sluice.ts'
import { BUSY_MS, until } from '../../support/until.ts'
import { inspect, openVisitor, SCREENSHOTS, type Visitor } from './dashboard-visitor.ts'

/** A finding is shown this soon after an incident begins, and is gone this soon after its end. */
const WITHIN_MS = 15_000 + BUSY_MS

type Way = 'page' | 'api' | 'cli'
const ALL_WAYS: readonly Way[] = ['page', 'api', 'cli']
const LOOKS =
  SCREENSHOTS === undefined
    ? ({ schemes: ['dark'], widths: [1280] } as const)
    : ({ schemes: ['dark', 'light'], widths: [1280, 390] } as const)

/** Starts a dashboard, and opens its overview in a browser as an operator. */
export async function openOnCall(t: TestScope, sluice: TestSluice) {
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', { ...sluice.settings, PORT: '0' })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  const url = `http://127.0.0.1:${Object(address).port}`
  await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  await untilKeyIsKnown(sluice.url, key)
  const redis = connectFailFast({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  await once(redis, 'ready')
  const session = await createSessions(redis, queueKeys(sluice.settings.QUEUE ?? '')).open({
    role: 'operator',
    by: 'ada@here',
  })
  redis.disconnect()
  const browser = await chromium.launch({ executablePath: findChromium() })
  t.onTestFinished(() => browser.close())
  const visitor = await openVisitor(browser, [url])
  await visitor.page.context().addCookies([{ name: 'sluice', value: session, url }])
  await visitor.page.goto(`${url}/overview`)
  return {
    url,
    ...watching(visitor, sluice, key),
    inspectAll: (name: string) => inspectAll(visitor, url, name),
  }
}

function watching({ page, faults }: Visitor, sluice: TestSluice, key: string) {
  const status = async (): Promise<Status> => {
    const signal = AbortSignal.timeout(WITHIN_MS)
    const response = await fetch(`${sluice.url}/admin/overview`, {
      headers: { 'x-api-key': key },
      signal,
    })
    return JSON.parse(await response.text())
  }
  const settings = { ...sluice.settings, SLUICE_API_KEY: key }
  const run = (...args: string[]) => runSluice({ settings }, ...args, '--url', sluice.url)
  /**
   * Reads what each way says, until `isSo`; prints after how many seconds each did. The CLI is
   * asked once the page has said so, because each of its starts costs half a second of CPU.
   */
  async function untilAll(
    what: string,
    ways: readonly Way[],
    isSo: (text: string) => boolean,
  ): Promise<void> {
    const begin = performance.now()
    const readers: Record<Way, () => Promise<string>> = {
      page: async () =>
        (await page.locator('#verdict, #redis-unavailable').allTextContents()).join('\n'),
      api: async () => textOf(await status()),
      cli: async () => {
        const { stdout, stderr } = await run('status')
        return stdout + stderr
      },
    }
    const find = async (way: Way) => {
      let last = ''
      const ask = async () => {
        last = await readers[way]().catch(String)
        return isSo(last)
      }
      const left = begin + WITHIN_MS - performance.now()
      await until(`${way}: ${what}`, ask, left).catch(({ message }) =>
        assert.fail(`${message}, but ${last}`),
      )
      return `${way} ${((performance.now() - begin) / 1000).toFixed(1)} s`
    }
    const shown = await Promise.all(ways.filter((way) => way !== 'cli').map(find))
    if (ways.includes('cli')) shown.push(await find('cli'))
    console.log(`${what}: ${shown.join(', ')}`)
  }
  return {
    page,
    faults,
    status,
    runSluice: run,
    /** Resolves when each way names a finding. */
    named: (text: RegExp, ways = ALL_WAYS) =>
      untilAll(String(text), ways, (shown) => text.test(shown)),
    well: () => untilAll('all is well', ALL_WAYS, (shown) => /^All is well/m.test(shown)),
  }
}

/** The verdict as people read it. */
function textOf({ verdict = [], detail = '' }: Partial<Status> & { detail?: string }): string {
  if (detail !== '') return detail
  const isWell = verdict.every(({ level }) => level === 'note')
  return [...(isWell ? ['All is well'] : []), ...verdict.map(({ text }) => text)].join('\n')
}

/**
 * Checks the pages that people look at in an incident, and takes their pictures if asked: small and
 * large, light and dark.
 */
async function inspectAll({ page, faults }: Visitor, url: string, name: string): Promise<void> {
  for (const path of ['/jobs?state=waiting', '/failures', '/overview']) {
    await page.goto(url + path)
    for (const colorScheme of LOOKS.schemes) {
      await page.emulateMedia({ colorScheme })
      for (const width of LOOKS.widths) {
        await page.setViewportSize({ width, height: 800 })
        const tooWide = Number(
          await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
        )
        assert(tooWide <= 0, `${name} ${path} at ${width}: ${tooWide}`)
        await inspect(
          { page, faults },
          `${name} ${path.replace(/\W+/g, '-')} ${colorScheme} ${width}`,
        )
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  }
}

/** Reaches a link, a button or a field by the Tab key alone. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  const seen: string[] = []
  for (let presses = 0; presses < 120; presses++) {
    await page.keyboard.press('Tab')
    const focused =
      "(document.activeElement.textContent || document.activeElement.getAttribute('aria-label') || '')"
    const text = String(await page.evaluate(focused)).trim()
    if (name.test(text)) return
    seen.push(text.slice(0, 40))
  }
  assert.fail(`no ${name} among ${seen.join(' | ')}`)
}
