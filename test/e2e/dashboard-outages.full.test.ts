import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSessions } from '@sluice/credentials/sessions'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, startProcess } from '@sluice/test-support'
import { chromium } from 'playwright-core'
import { test } from 'vitest'
import { findChromium, needs } from '../runner/programs.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { inspect, openVisitor } from './support/dashboard-visitor.ts'
import { acceptedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

test(
  'the pages say in words that MongoDB or Redis is unavailable, and go on when they are back',
  needs('chromium'),
  async (t) => {
    const mongodb = await openTcpProxy(t, requiredUrl('MONGODB_URL'))
    const redis = await openTcpProxy(t, requiredUrl('REDIS_URL'))
    const sluice = await startSluice(t, { mongodbUrl: mongodb.url, redisUrl: redis.url })
    const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
      ...sluice.settings,
      PORT: '0',
    })
    const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
    const url = `http://127.0.0.1:${Object(address).port}`
    await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
    const connection = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
    t.onTestFinished(() => connection.disconnect())
    await once(connection, 'ready')
    const sessions = createSessions(connection, queueKeys(sluice.settings.QUEUE ?? ''))
    const session = await sessions.open({ role: 'operator', by: 'ada@here' })
    const browser = await chromium.launch({ executablePath: findChromium() })
    t.onTestFinished(() => browser.close())
    const visitor = await openVisitor(browser, [url])
    const { page, faults } = visitor
    await page.context().addCookies([{ name: 'sluice', value: session, url }])
    await page.goto(`${url}/overview`)
    await page.getByText('All is well').waitFor()

    await mongodb.shut()
    const caller = createCaller(sluice)
    for (const externalId of ['C1-1', 'C1-2', 'C1-3'])
      acceptedIn(await caller.post(someThread({ externalId }), { prefer: 'respond-async' }))
    // The page refreshes itself.
    await page.getByText(/MongoDB has been unavailable for \d+ s .*; 3 jobs wait/).waitFor()
    await inspect(visitor, 'overview while MongoDB is unavailable')
    await page.goto(`${url}/thread?tenant=acme&service=slack&externalId=C1-1`)
    await page
      .getByText('MongoDB is unavailable or too slow: what is stored can’t be shown.')
      .waitFor()
    await page
      .getByText('1 hit. MongoDB is unavailable or too slow: what is stored was not looked up.')
      .last()
      .waitFor()
    await inspect(visitor, 'a thread while MongoDB is unavailable')
    assert.deepEqual(faults, [])

    await page.goto(`${url}/overview`)
    const stale = page.getByText('This page could not be refreshed.')
    await page.route(`${url}/overview`, (route) => route.abort())
    await stale.waitFor()
    await inspect(visitor, 'the dashboard is unavailable')
    await page.unroute(`${url}/overview`)
    await stale.waitFor({ state: 'hidden' })

    await redis.shut()
    // Also a page that somebody looks at says it, by itself.
    await page.getByText('This page works again as soon as Redis does.').waitFor()
    await inspect(visitor, 'Redis is unavailable')
    for (const path of ['/login', '/', '/overview']) {
      await page.goto(url + path)
      await page.getByText('This page works again as soon as Redis does.').waitFor()
      assert.equal(await page.locator('nav, form, button').count(), 0, path)
    }

    await Promise.all([redis.reopen(), mongodb.reopen()])
    await page.getByText('All is well').waitFor()
    await until(
      'the threads to be stored',
      async () => (await sluice.db.collection('sources').countDocuments()) === 3,
    )
    assert.deepEqual(
      faults.filter((fault) => !/status of 503|ERR_FAILED/.test(fault)),
      [],
    )
  },
)
