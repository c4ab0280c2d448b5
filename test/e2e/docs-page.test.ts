import assert from 'node:assert/strict'
import { describeApi } from '@sluice/api/openapi'
import { DEFAULT_LIMITS } from '@sluice/contract'
import { beforeSuite } from '@sluice/test-support'
import { type Browser, chromium, type Page } from 'playwright-core'
import { describe, test } from 'vitest'
import { findChromium, needs } from '../runner/programs.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { createCaller } from './support/caller.ts'
import { problemIn } from './support/read-reply.ts'

describe('the pages under /docs, in Chromium', needs('chromium'), () => {
  let sluice: SharedSluice
  let browser: Browser
  beforeSuite(async (t) => {
    const executablePath = findChromium()
    ;[sluice, browser] = await Promise.all([shareSluice(t), chromium.launch({ executablePath })])
    t.onTestFinished(() => browser.close())
  })

  /**
   * Opens a page that may reach nothing but the API, and records its errors and its other requests.
   */
  async function open(path: string): Promise<{ page: Page; faults: string[] }> {
    const page = await browser.newPage()
    const faults: string[] = []
    // Chromium reports a violation of the page's policy as an error of the console.
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url())
      if (origin !== sluice.url && protocol !== 'data:')
        faults.push(`a request to ${request.url()}`)
    })
    await page.goto(sluice.url + path)
    return { page, faults }
  }

  test('/docs shows all routes, and is operated by the keyboard: a thread is posted with a key, and its 200 is shown', async () => {
    const { page, faults } = await open('/docs')
    const routes = page.locator('.opblock-summary-control')
    await routes.first().waitFor()
    assert.equal(await routes.count(), routeCount)
    await tabTo(page, 'button.authorize')
    await page.keyboard.press('Enter')
    await tabTo(page, '#api_key_value')
    await page.keyboard.type(sluice.key)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    await tabTo(page, '.opblock-summary-control')
    await page.keyboard.press('Enter')
    // The page draws the route's form again once it knows the example, and a button that is drawn
    // again loses the focus.
    await page.locator('textarea.body-param__text').waitFor()
    await tabTo(page, 'button.execute')
    await page.keyboard.press('Enter')
    const answer = page.locator('.live-responses-table .response').first()
    await answer.waitFor()
    assert.match((await answer.textContent()) ?? '', /^200.*"New source received successfully\."/s)
    assert.equal(await sluice.db.collection('sources').countDocuments({ tenant: sluice.tenant }), 1)
    assert.deepEqual(faults, [])
  })

  test("a problem's type opens the section that explains it", async () => {
    const { type } = problemIn(
      await createCaller({ url: sluice.url }).post({}),
      403,
      'api_key_invalid',
    )
    const { page, faults } = await open(type)
    const section = page.locator('section:target')
    assert.match((await section.textContent()) ?? '', /API key missing or invalid.*What to do:/s)
    assert.deepEqual(faults, [])
  })
})

const routeCount = Object.values(describeApi(DEFAULT_LIMITS).paths).flatMap((path) =>
  Object.keys(path),
).length

/** More elements than any way between two of the test. */
const MOST_TABS = 60

/** Presses the tab key until the element has the focus. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let pressed = 0; pressed < MOST_TABS; pressed++) {
    if ((await page.locator(`${selector}:focus`).count()) === 1) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`the tab key does not reach ${selector}`)
}
