import assert from 'node:assert/strict'
import { createKey, shortKeyId } from '@sluice/credentials/keys'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite, type StartedProcess, startProcess } from '@sluice/test-support'
import { type Browser, chromium } from 'playwright-core'
import { describe, test } from 'vitest'
import { findChromium, needs } from '../runner/programs.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { inspect, openVisitor, SCREENSHOTS, type Visitor } from './support/dashboard-visitor.ts'
import { acceptedIn, jobIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

/** The Import-Id of an import whose caller waits. */
const WAITED = '8e03978e-40d5-43e8-bc93-6894a57f9324'
const HTML = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'-->'
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const STORED = { externalId: 'q1', text: `Stored with ${HTML}`, speaker: 'Ada' }

describe('the dashboard in Chromium', needs('chromium'), () => {
  let sluice: TestSluice
  let browser: Browser
  let dashboard: StartedProcess
  let url: string
  let importer: Caller
  let operatorKey: string
  /** As the log names it. */
  let operatorId: string
  let viewerKey: string
  /** Jobs that failed, in the order of their threads. */
  let jobs: string[]
  let importId: string

  beforeSuite(async (t) => {
    const executablePath = findChromium()
    ;[sluice, browser] = await Promise.all([startSluice(t), chromium.launch({ executablePath })])
    t.onTestFinished(() => browser.close())
    const settings = {
      ...sluice.settings,
      PORT: '0',
      TRACE_URL: 'https://traces.example/{traceId}',
    }
    dashboard = startProcess(t, 'apps/dashboard/src/main.ts', settings)
    const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
    url = `http://127.0.0.1:${Object(address).port}`
    await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
    const operator = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    operatorKey = operator.key
    operatorId = shortKeyId(operator.record.id)
    viewerKey = (await createKey(sluice.db, { role: 'viewer', name: 'support' })).key
    importer = createCaller(sluice)
    jobs = await failJobs([HTML, 'C1-2', 'C1-3', 'C1-4'])
  })

  /**
   * Posts threads that MongoDB refuses, the first with HTML in every field, and an import with a
   * refused item.
   */
  async function failJobs(externalIds: string[]): Promise<string[]> {
    const sources = sluice.db.collection<{ _id: string }>('sources')
    const ids = externalIds.map((externalId) => ({
      _id: sourceIdOf('acme', { service: 'slack', externalId }),
    }))
    // Sluice never writes such documents, so every job for their threads fails.
    await sources.insertMany(ids)
    const fields = {
      title: HTML,
      channelName: HTML,
      description: HTML,
      quotes: [{ text: HTML, speaker: HTML }],
    }
    const headers = { prefer: 'respond-async', traceparent: `00-${TRACE}-00f067aa0ba902b7-01` }
    const replies = await Promise.all(
      externalIds.map((externalId) =>
        importer.post(someThread({ ...fields, externalId }), headers),
      ),
    )
    replies.forEach(acceptedIn)
    const paths = replies.map(({ headers }) => headers.get('location') ?? '')
    for (const path of paths)
      assert.equal(jobIn(await importer.get(path, { prefer: 'wait=30' })).state, 'failed')
    await sources.deleteMany({ _id: { $in: ids.map(({ _id }) => _id) } })
    const lines = [
      someThread({ externalId: 'fine', quotes: [STORED] }),
      { service: HTML, title: HTML },
    ].map((item) => JSON.stringify(item))
    await importer.postImport(lines[1] ?? '', { 'import-id': WAITED })
    const posted = await importer.postImport(lines.join('\n'), { prefer: 'respond-async' })
    importId = posted.headers.get('location')?.replace('/batches/', '') ?? ''
    return paths.map((path) => path.replace('/jobs/', ''))
  }

  async function logIn(
    key: string,
    options?: Parameters<Browser['newContext']>[0],
  ): Promise<Visitor> {
    const visitor = await openVisitor(browser, [url], options)
    const { page } = visitor
    await page.goto(url)
    // On a busy machine, a look-up of a key may exceed its second: then the page says that MongoDB
    // is unavailable.
    await until('the login', async () => {
      await page.getByLabel('Key of an operator or a viewer').fill(key)
      await page.keyboard.press('Enter')
      const shown = page.getByRole('searchbox').or(page.getByRole('alert'))
      await shown.waitFor()
      const refusal = await page.getByRole('alert').allTextContents()
      assert.match(refusal.join(), /^$|MongoDB is unavailable/)
      return refusal.length === 0
    })
    return visitor
  }

  test('an operator reads every page, HTML in every field is text, and nothing else is loaded', async () => {
    const visitor = await logIn(operatorKey)
    const { page, faults } = visitor
    await inspect(visitor, 'find')
    await page.getByRole('searchbox').fill('C1-2')
    await page.keyboard.press('Enter')
    await page.getByText('1 hit.').waitFor()
    await inspect(visitor, 'hits')
    await page.getByRole('link', { name: 'slack/C1-2' }).click()
    await page.getByText('It is not stored.').waitFor()
    await page.getByRole('list', { name: 'Timeline' }).waitFor()
    const trace = page.getByRole('region', { name: 'Hits' }).getByRole('link', { name: 'Trace' })
    assert.equal(await trace.getAttribute('href'), `https://traces.example/${TRACE}`)
    await inspect(visitor, 'a thread that failed')
    await page.getByRole('link', { name: 'Jobs' }).click()
    await inspect(visitor, 'completed jobs')
    storedIn(
      await importer.post(
        someThread({ externalId: 'fine', quotes: [{ ...STORED, speaker: 'Grace' }] }),
      ),
    )
    await page.getByRole('link', { name: 'slack/fine', exact: true }).first().click()
    await page.getByRole('list', { name: 'Timeline' }).waitFor()
    await inspect(visitor, 'a completed job')
    await page.getByRole('link', { name: 'slack/fine', exact: true }).first().click()
    const written = page
      .getByRole('region', { name: 'Jobs that wrote it' })
      .locator('tbody td:last-child')
    assert.deepEqual(await written.allTextContents(), [
      'changed the source, last changed 1 quote',
      'created the source, inserted 1 quote',
    ])
    await page.getByText('2 hits.').waitFor()
    assert.equal(
      await page.getByText(STORED.text).count(),
      0,
      'no text is shown before it is revealed',
    )
    await page.getByRole('button', { name: 'Reveal the texts' }).click()
    await page.getByText(STORED.text).waitFor()
    await inspect(visitor, 'a thread')
    const shown = await dashboard.line(({ msg }) => msg === 'payload.revealed')
    assert.deepEqual(
      [shown.tenant, shown.externalId, typeof shown.operator],
      ['acme', 'fine', 'string'],
    )
    await page.getByRole('link', { name: 'Overview' }).click()
    for (const [more, words] of [
      [
        { for: '2 hours', confirmed: 'yes' },
        'for is not a duration. Write a number and a unit: 30m',
      ],
      [{ for: '32d', confirmed: 'yes' }, 'seconds must be a whole number from 1 to 2678400'],
      [{ for: '1h' }, 'confirmed must be checked'],
    ] as const) {
      const csrf = (await page.locator('input[name=csrf]').first().getAttribute('value')) ?? ''
      const form = { csrf, why: 'a try', ...more }
      const answer = await page.request.post(`${url}/lanes/interactive/pause`, {
        form,
        headers: { origin: url },
      })
      assert.deepEqual([answer.status(), (await answer.text()).includes(words)], [400, true], words)
    }
    // By the keyboard alone.
    await page.getByLabel('Pause … the bulk lane').focus()
    await page.keyboard.press('Enter')
    await page
      .locator('#lanes details[open]')
      .getByLabel('Reason')
      .fill('MongoDB is being upgraded')
    await page.keyboard.press('Tab')
    await page.keyboard.type('2h')
    await inspect(visitor, 'the menu of a lane')
    await page.keyboard.press('Enter')
    await page
      .getByText(
        /The bulk lane has been paused for \d+ s by [0-9a-f]+ \(MongoDB is being upgraded\); it ends in (2 h|\d+ min)/,
      )
      .waitFor()
    const opened = await dashboard.line(
      ({ msg, kind }) => msg === 'operation.opened' && kind === 'pause',
    )
    assert.deepEqual([opened.lane, opened.operator], ['bulk', operatorId])
    await page.getByRole('region', { name: 'Counts' }).waitFor()
    await inspect(visitor, 'overview')
    await page
      .getByRole('region', { name: 'Processes' })
      .getByRole('link', { name: 'worker' })
      .first()
      .click()
    await page
      .getByRole('region', { name: 'Completed jobs' })
      .getByRole('link', { name: 'slack/fine' })
      .first()
      .waitFor()
    await page.getByRole('region', { name: 'Counts' }).getByText('stored').waitFor()
    await inspect(visitor, 'a worker')
    await page.goto(`${url}/tenants/acme`)
    await page
      .getByRole('region', { name: 'Failed jobs by reason' })
      .getByRole('link')
      .first()
      .waitFor()
    await inspect(visitor, 'a tenant')
    await page.goto(`${url}/overview`)
    await page
      .getByRole('region', { name: 'Verdict' })
      .getByRole('button', { name: 'Resume bulk' })
      .click()
    await page.getByLabel('Pause … the bulk lane').waitFor()
    // Once each process has reported what it counted.
    await until('each chart to have its lines', async () => {
      await page.reload()
      return (await page.locator('svg path.line-0[d*="M"]').count()) === 4
    })
    await page.getByRole('link', { name: /^Failures/ }).click()
    await page.getByLabel('Failed within').selectOption('1h')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/last=1h/)
    await inspect(visitor, 'failures')
    await page.locator('#groups a').first().click()
    await page.getByRole('button', { name: 'Retry 4 jobs' }).waitFor()
    await inspect(visitor, 'group')
    await page.getByRole('link', { name: `slack/${HTML}` }).click()
    await inspect(visitor, 'job')
    assert.equal(
      await page.getByRole('link', { name: 'Trace' }).getAttribute('href'),
      `https://traces.example/${TRACE}`,
    )
    assert.equal(await page.locator('pre').count(), 0)
    await page.getByRole('button', { name: 'Reveal the payload' }).click()
    assert.match((await page.locator('pre').textContent()) ?? '', /speaker: `<img src=x/)
    await inspect(visitor, 'payload')
    const revealed = await dashboard.line(
      ({ msg, jobId }) => msg === 'payload.revealed' && jobId === jobs[0],
    )
    assert.equal(revealed.operator, operatorId)
    await page.getByRole('link', { name: 'Imports' }).click()
    await inspect(visitor, 'imports')
    await page.getByRole('link', { name: WAITED }).click()
    await page.getByText('request_invalid').waitFor()
    await page.getByRole('heading', { name: /, 1 item$/ }).waitFor()
    await inspect(visitor, 'an import that its caller waits for')
    await page.goBack()
    await page.getByRole('link', { name: importId }).click()
    await page.getByText('request_invalid').waitFor()
    await inspect(visitor, 'import')
    await page.getByRole('link', { name: 'Operations' }).click()
    await page.getByText('MongoDB is being upgraded').waitFor()
    await inspect(visitor, 'a lane’s operations')
    await page.getByRole('link', { name: 'Bull Board' }).click()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.reload()
      await page.locator('#root').getByText('4 Jobs').waitFor()
      if (SCREENSHOTS === undefined) continue
      await page.screenshot({ path: `${SCREENSHOTS}/board ${colorScheme}.png` })
    }
    await page.locator('header button[aria-haspopup=menu]').click()
    await page.getByText('Back to Sluice').click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('a page that refuses something stays as it is, and is not called stale', async () => {
    const { page } = await logIn(viewerKey)
    for (const path of ['/failures?last=soon', '/failures/00000000']) {
      await page.goto(url + path)
      const search = page.getByLabel('Find a job or a thread')
      await search.fill('typed meanwhile')
      // With the second one, the first has been shown.
      for (let refreshes = 0; refreshes < 2; refreshes++) {
        await page.waitForResponse((answer) => answer.request().resourceType() === 'fetch')
      }
      assert.equal(await page.getByText('This page could not be refreshed.').isVisible(), false)
      assert.equal(await search.inputValue(), 'typed meanwhile')
    }
  })

  test('an operator deletes a thread after a question, and the operation says who did it, without texts', async () => {
    const { source } = storedIn(
      await importer.post(someThread({ externalId: 'to delete', quotes: [STORED] })),
    )
    const visitor = await logIn(operatorKey)
    const { page } = visitor
    await page.goto(`${url}/thread?tenant=acme&service=slack&externalId=to+delete`)
    await page.getByText('Delete …').click()
    await page.getByText('This deletes the thread with all its quotes for good.').waitFor()
    await inspect(visitor, 'the question before a deletion')
    await page.getByRole('button', { name: 'Delete the thread' }).click()
    await page.getByText('completed: 1 thread deleted').waitFor()
    const shown = (await page.locator('#operations').textContent()) ?? ''
    for (const part of ['delete', operatorId, 'acme', 'to delete'])
      assert(shown.includes(part), part)
    assert(!shown.includes(STORED.text) && !shown.includes(source.title))
    assert.equal((await importer.get(`/sources/${source.id}`)).status, 404)
  })

  test('a viewer sees ids and reasons without values, and no control; other forms than those of a session do nothing', async () => {
    const { page, faults } = await logIn(viewerKey)
    assert.equal(await page.getByRole('link', { name: 'Bull Board' }).count(), 0)
    assert.equal(await page.getByLabel('Reason').count(), 0)
    const thread = '/thread?tenant=acme&service=slack&externalId=fine'
    for (const path of [
      thread,
      '/jobs',
      '/overview',
      '/operations',
      '/tenants/acme',
      `/jobs/${jobs[0]}`,
    ]) {
      await page.goto(url + path)
      assert.equal(
        await page.locator('main form[method=post] button, main a.button').count(),
        0,
        path,
      )
    }
    assert.equal(
      await page.getByText(sourceIdOf('acme', { service: 'slack', externalId: HTML })).count(),
      0,
    )
    assert.deepEqual(faults, [])
    const [cookie] = await page.context().cookies()
    const csrf = String(await page.locator('input[name=csrf]').first().getAttribute('value'))
    const send = async (
      path: string,
      headers: Record<string, string> = {},
      body: Record<string, string> = { csrf },
    ) => {
      const sent = { cookie: `sluice=${cookie?.value}`, origin: url, ...headers }
      const form = {
        method: 'POST',
        headers: sent,
        body: new URLSearchParams(body),
        redirect: 'manual',
      } as const
      return (await fetch(url + path, form)).status
    }
    for (const path of ['/board', '/board/api/queues']) {
      const { status } = await fetch(url + path, { headers: { cookie: `sluice=${cookie?.value}` } })
      assert.equal(status, 403, path)
    }
    for (const path of [
      '/lanes/bulk/pause',
      ...['/reveal?', '/delete?'].map((act) => thread.replace('?', act)),
    ])
      assert.equal(await send(path), 403)
    for (const act of ['retry', 'discard', `${jobs[0]}/reveal`])
      assert.equal(await send(`/jobs/${act}`), 403, act)
    assert.equal(await send('/logout', {}, {}), 403)
    assert.equal(await send('/logout', {}, { csrf: 'x' }), 403)
    assert.equal(await send('/logout', { origin: 'https://elsewhere.example' }), 403)
    assert.equal(await send('/logout', { origin: '' }), 403)
    assert.equal(await send('/logout'), 303)
  })

  test('the longest id breaks no page, an id turns no other text around, and moments are in the zone of the browser', async () => {
    const [long, turned] = ['L'.repeat(512), 'abc\u202egnp']
    for (const externalId of [long, turned])
      storedIn(await importer.post(someThread({ externalId })))
    const options = { timezoneId: 'Asia/Kathmandu', viewport: { width: 390, height: 800 } }
    const { page, faults } = await logIn(operatorKey, options)
    const thread = (id: string) =>
      `/thread?${new URLSearchParams({ tenant: 'acme', service: 'slack', externalId: id })}`
    const job = `/jobs/${jobs[0]}`
    for (const path of [`/find?q=${long}`, thread(long), thread(turned), job, '/jobs'])
      for (const width of [320, 390, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        await page.goto(url + path)
        const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        assert.ok(Number(tooWide) <= 0, `${path} at ${width}: ${tooWide}`)
      }
    await page.setViewportSize(options.viewport)
    await page.getByRole('link', { name: long }).first().click()
    const { height = 0 } = (await page.locator('dd a').first().boundingBox()) ?? {}
    assert.ok(height > 50 && height < 100, `the name on the page of its job: ${height} px high`)
    await page.goto(`${url}/jobs`)
    assert.equal(
      await page.evaluate("getComputedStyle(document.querySelector('td a')).unicodeBidi"),
      'isolate',
    )
    const age = page.locator('.jobs time').first()
    assert.match((await age.textContent()) ?? '', /^\d+ (s|min)$/)
    assert.match((await age.getAttribute('title')) ?? '', /^\d{4}-.* UTC\)$/)
    await page.goto(url + thread(turned))
    const time = page.locator('time').first()
    const at = Date.parse((await time.getAttribute('datetime')) ?? '')
    const [inNepal, inUtc] = [at + 345 * 60_000, at].map((ms) =>
      new Date(ms).toISOString().slice(0, 19).replace('T', ' '),
    )
    assert.equal(await time.textContent(), inNepal)
    assert.equal(await time.getAttribute('title'), `${inUtc} UTC`)
    assert.deepEqual(faults, [])
  })

  test('a table keeps the focus when its page refreshes itself; a slash leads to the search; a button copies an id', async () => {
    const { page, faults } = await logIn(operatorKey, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.goto(`${url}/jobs`)
    const table = page.getByRole('region', { name: 'Jobs' })
    await table.focus()
    storedIn(await importer.post(someThread({ externalId: 'while focused' })))
    await page.getByRole('link', { name: 'slack/while focused' }).waitFor()
    assert.equal(await page.locator(':focus').getAttribute('aria-label'), 'Jobs')
    await page.goto(`${url}/jobs/${jobs[0]}`)
    await page.getByRole('button', { name: 'Copy' }).first().click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), jobs[0])
    await page.keyboard.press('/')
    await page.locator('#q:focus').waitFor()
    await page.keyboard.type('C1-2')
    assert.equal(await page.getByRole('searchbox').inputValue(), 'C1-2')
    assert.deepEqual(faults, [])
  })

  test('failed jobs are a line each, and a bar that stays counts those that the keyboard selects', async () => {
    const visitor = await logIn(operatorKey, { viewport: { width: 1280, height: 460 } })
    const { page, faults } = visitor
    await page.goto(`${url}/jobs?state=failed`)
    const rows = page.locator('.jobs tbody tr')
    const heights = async () =>
      rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height))
    assert.deepEqual(
      (await heights()).map((height) => height <= 36),
      [true, true, true, true],
    )
    const [count, retry] = [page.getByRole('status'), page.getByRole('button', { name: 'Retry' })]
    assert.deepEqual([await count.textContent(), await retry.isDisabled()], ['0 selected', true])
    const { y = 460, height = 0 } = (await retry.boundingBox()) ?? {}
    assert.ok(y + height <= 460, 'the bar stays in sight')
    await page.getByLabel('All', { exact: true }).press(' ')
    assert.equal(await count.textContent(), '4 selected')
    await page.getByLabel('Select slack/C1-3').press(' ')
    assert.deepEqual([await count.textContent(), await retry.isDisabled()], ['3 selected', false])
    await inspect(visitor, 'selected jobs')
    await page.setViewportSize({ width: 390, height: 800 })
    assert.deepEqual(
      (await heights()).map((height) => height <= 64),
      [true, true, true, true],
    )
    await inspect(visitor, 'selected jobs on a phone')
    await page.getByRole('button', { name: 'Discard …' }).press('Enter')
    await page.getByText('This removes 3 jobs for good. 3 threads could not be stored').waitFor()
    await page.goto(`${url}/jobs?state=failed&tenant=nobody`)
    await page.getByText('No job.').waitFor()
    assert.equal(await retry.isVisible(), false)
    assert.deepEqual(faults, [])
    const { page: plain } = await logIn(operatorKey, { javaScriptEnabled: false })
    await plain.goto(`${url}/jobs?state=failed`)
    await plain.getByRole('button', { name: 'Retry' }).click()
    await plain.getByText('No failed job was selected, so nothing was done.').waitFor()
  })

  test('all jobs of a reason are retried at once, with progress; a discard names the number first', async () => {
    const visitor = await logIn(operatorKey, {
      colorScheme: 'dark',
      viewport: { width: 390, height: 800 },
    })
    const { page, faults } = visitor
    const tallest = async (table: string) => {
      const rows = page.getByRole('region', { name: table, exact: true }).locator('tbody tr')
      const heights = rows.evaluateAll((all) => all.map((row) => row.clientHeight))
      return Math.max(...(await heights))
    }
    await page.goto(`${url}/overview`)
    await page.getByText('Show the counts').click()
    for (const name of ['Lanes', 'Counts', 'Processes'])
      assert.ok((await tallest(name)) <= 104, `${name} are cards`)
    await inspect(visitor, 'overview dark, on a phone')
    await page.goto(`${url}/jobs`)
    await inspect(visitor, 'jobs dark, on a phone')
    await page.goto(`${url}/failures`)
    await inspect(visitor, 'failures dark, on a phone')
    assert.ok((await tallest('Failed jobs by reason')) <= 112, 'a reason is a card')
    await page.setViewportSize({ width: 300, height: 800 })
    const lines = await page
      .locator('#groups .reason')
      .first()
      .evaluate((one) => one.clientHeight)
    assert.ok(lines <= 2 * 24, `a reason has two lines at most: ${lines} px`)
    await page.setViewportSize({ width: 390, height: 800 })
    const reason = (await page.locator('#groups a').first().textContent()) ?? ''
    await page.locator('#groups a').first().click()
    const form = page.locator('form[action="/failures/retry"]')
    const fields = await form.evaluate((one) =>
      [...one.querySelectorAll('input')].map((of) => [of.name, of.value]),
    )
    const { page: other } = await logIn(operatorKey)
    await other.goto(page.url())
    await page.getByText('Discard …').click()
    await page
      .getByText('This removes 4 jobs for good. 4 threads that could not be stored are lost.')
      .waitFor()
    await inspect(visitor, 'discard')
    await page.getByRole('button', { name: 'Retry 4 jobs' }).click()
    // The page refreshes itself.
    await page.getByText('completed: 4 retried').waitFor()
    await other.getByText('No failed job has this reason').waitFor()
    await inspect(visitor, 'operations')
    assert.match(
      (await page.getByRole('link', { name: reason }).getAttribute('href')) ?? '',
      /^\/failures\/\w{8}$/,
    )
    const second = await page.request.post(`${url}/failures/retry`, {
      form: Object.fromEntries(fields),
      headers: { origin: url },
    })
    assert.ok(second.ok())
    await page
      .getByText('completed: 0 retried (nothing left to do: all were retried or discarded before)')
      .waitFor()
    const opened = await dashboard.line(
      ({ msg, kind }) => msg === 'operation.opened' && kind === 'retry',
    )
    assert.equal(opened.operator, operatorId)
    for (const id of jobs)
      assert.equal(
        jobIn(await importer.get(`/jobs/${id}`, { prefer: 'wait=30' })).state,
        'completed',
      )
    await page.getByRole('link', { name: '4 stored' }).waitFor()
    assert.equal(await page.getByRole('link', { name: '0 failed again' }).count(), 2)
    const stored = await sluice.db
      .collection('quotes')
      .findOne({ sourceId: sourceIdOf('acme', { service: 'slack', externalId: HTML }) })
    assert.equal(stored?.text, HTML)
    assert.deepEqual(faults, [])
  })
})
