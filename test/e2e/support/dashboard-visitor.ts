import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'

/** `SCREENSHOTS=folder` keeps a picture of each page, to be looked at. */
export const { SCREENSHOTS } = process.env

/** A browser of its own. */
export interface Visitor {
  page: Page
  /** Faults of the pages so far: messages of the console, dialogs, and requests to other hosts. */
  faults: string[]
}

type Options = Parameters<Browser['newContext']>[0]

/** Opens a browser that records faults. @param urls where pages may load from */
export async function openVisitor(
  browser: Browser,
  urls: readonly string[],
  options: Options = {},
): Promise<Visitor> {
  const page = await (await browser.newContext(options)).newPage()
  const faults: string[] = []
  // A test may type before Chromium has moved the focus: Chromium says so, and leaves it where it
  // is.
  const isOurs = (text: string) => !text.startsWith('Autofocus processing was blocked')
  page.on('console', (message) => isOurs(message.text()) && faults.push(message.text()))
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('dialog', () => faults.push('a dialog'))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (!urls.includes(origin) && protocol !== 'data:') faults.push(`a request to ${request.url()}`)
  })
  return { page, faults }
}

/** Axe then does not describe each element that passed. */
const ONLY_VIOLATIONS = "{ resultTypes: ['violations'] }"

/** Checks a page by axe-core, and takes its picture if asked. */
export async function inspect({ page }: Visitor, name: string): Promise<void> {
  await page.evaluate(axe.source)
  const violations = await page.evaluate(`axe.run(${ONLY_VIOLATIONS}).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`)
  assert.deepEqual(violations, [], `${name} at ${page.url()}`)
  if (SCREENSHOTS === undefined) return
  await mkdir(SCREENSHOTS, { recursive: true })
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true })
}
