import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createKey, revokeKey } from '@sluice/credentials/keys'
import { createSessions, type Sessions } from '@sluice/credentials/sessions'
import { freePort } from '@sluice/local'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import {
  beforeSuite,
  requiredUrl,
  type StartedProcess,
  startProcess,
  type TestScope,
  testDatabase,
  testQueueName,
} from '@sluice/test-support'
import { startIdentityProvider } from '@sluice/test-support/identity-provider'
import type { Db } from 'mongodb'
import { type Browser, chromium } from 'playwright-core'
import { describe, test } from 'vitest'
import { findChromium, needs } from '../runner/programs.ts'
import { until } from '../support/until.ts'
import { inspect, openVisitor, type Visitor } from './support/dashboard-visitor.ts'

const REFUSED = /the server responded with a status of (403|503)/

// Each dashboard lets this machine try ten logins a minute.
describe('the login in Chromium', needs('chromium'), () => {
  let browser: Browser
  let servers: Record<'REDIS_URL' | 'MONGODB_URL' | 'QUEUE', string>
  let dashboard: StartedProcess
  let url: string
  let db: Db
  let sessions: Sessions

  beforeSuite(async (t) => {
    browser = await chromium.launch({ executablePath: findChromium() })
    t.onTestFinished(() => browser.close())
    db = await testDatabase(t)
    const mongodbUrl = new URL(requiredUrl('MONGODB_URL'))
    mongodbUrl.pathname = `/${db.databaseName}`
    servers = {
      REDIS_URL: requiredUrl('REDIS_URL'),
      MONGODB_URL: mongodbUrl.href,
      QUEUE: testQueueName(),
    }
    ;({ dashboard, url } = await startDashboard(t))
    const redis = connectFailFast({ redisUrl: servers.REDIS_URL, queue: '' }, () => {})
    t.onTestFinished(() => redis.disconnect())
    sessions = createSessions(redis, queueKeys(servers.QUEUE))
  })

  async function startDashboard(t: TestScope, port = '0', settings: Record<string, string> = {}) {
    const all = { ...servers, PORT: port, ADMIN_PORT: '0', ...settings }
    const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', all)
    const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
    const url = `http://127.0.0.1:${Object(address).port}`
    await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
    return { dashboard, url }
  }

  const open = () => openVisitor(browser, [url])
  const keyOf = async (role: 'operator' | 'viewer', name: string) =>
    (await createKey(db, { role, name })).key

  async function sendKey({ page }: Visitor, key: string): Promise<void> {
    // On a busy machine, a look-up of a key may exceed its second: then the page says that MongoDB
    // is unavailable.
    await until('the key is checked', async () => {
      // Chromium complains of a focus that comes before its own.
      await page.locator('#key:focus').waitFor()
      await page.getByLabel('Key of').fill(key)
      await page.getByRole('button', { name: 'Log in' }).click()
      return (await page.getByText('MongoDB is unavailable').count()) === 0
    })
  }

  /** A browser with a session. */
  async function enter(): Promise<Visitor & { session: string }> {
    const visitor = await open()
    const session = await sessions.open({ role: 'operator', by: 'ada@here' })
    await visitor.page.context().addCookies([{ name: 'sluice', value: session, url }])
    await visitor.page.goto(`${url}/operations`)
    await visitor.page.locator('.who').waitFor()
    return { ...visitor, session }
  }

  async function sessionIn({ page }: Visitor) {
    const cookies = await page.context().cookies('http://127.0.0.1')
    return cookies.find(({ name }) => name === 'sluice')
  }

  const statusOf = async (session: string | undefined) =>
    (await fetch(url, { headers: { cookie: `sluice=${session}` } })).status

  const alertOf = async ({ page }: Visitor) => (await page.getByRole('alert').textContent()) ?? ''

  test('a key of an operator or a viewer logs in, and no other key; a link works once, by its button', async () => {
    const visitor = await open()
    const { page, faults } = visitor
    await page.goto(`${url}/failures`)
    await inspect(visitor, 'login')
    assert.equal(await page.getByRole('link', { name: 'Log in with' }).count(), 0)
    const importer = (await createKey(db, { tenant: 'acme', name: 'importer' })).key
    for (const [key, refusal] of [
      [importer, /key of an importer/],
      ['slc_wrong', /unknown, revoked or expired/],
    ] as const) {
      await sendKey(visitor, key)
      assert.match(await alertOf(visitor), refusal)
    }
    await sendKey(visitor, await keyOf('viewer', 'support'))
    assert.equal(page.url(), `${url}/failures`, 'the login leads to the page that was asked for')
    const before = await sessionIn(visitor)
    assert.deepEqual([before?.httpOnly, before?.sameSite, before?.secure], [true, 'Lax', false])

    const link = `${url}/login?link=${await sessions.createLink({ role: 'operator', by: 'ada@here' })}`
    // A program that looks at the link does not use it up.
    assert.equal((await fetch(link)).status, 200)
    await page.goto(link)
    await page.getByRole('button', { name: 'Log in' }).click()
    assert.match((await page.locator('.who').textContent()) ?? '', /operator ada@here/)
    const after = await sessionIn(visitor)
    assert.notEqual(after?.value, before?.value)
    assert.equal(await statusOf(before?.value), 401, 'the session before has ended')
    await page.goto(link)
    await page.getByRole('button', { name: 'Log in' }).click()
    assert.match(await alertOf(visitor), /was used/)
    await page.goto(url)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.goto(`${url}/operations`)
    assert.match(page.url(), /\/login\?to=%2Foperations$/)
    assert.equal(
      await statusOf(after?.value),
      401,
      'the session has ended, and not only its cookie',
    )
    const opened = dashboard.log
      .filter(({ msg }) => msg === 'session.opened')
      .map(({ role, how }) => [role, how])
    assert.deepEqual(opened.slice(-2), [
      ['viewer', 'key'],
      ['operator', 'link'],
    ])
    assert.deepEqual(
      faults.filter((fault) => !REFUSED.test(fault)),
      [],
    )
  })

  test('a person of the identity provider logs in, without a role does not, and by a key while it is unavailable', async (t) => {
    const port = String(await freePort())
    // Of another site than the dashboard's: `localhost`.
    const idp = await startIdentityProvider(t, `http://127.0.0.1:${port}`)
    const own = { DASHBOARD_URL: `http://127.0.0.1:${port}`, ...idp.settings }
    const { url, dashboard } = await startDashboard(t, port, own)
    const visitor = await openVisitor(browser, [url, idp.url])
    const { page, faults } = visitor
    const way = page.getByRole('link', { name: `Log in with ${new URL(idp.url).host}` })
    idp.person = {
      sub: 'u-1',
      email: 'ada@corp.example',
      email_verified: true,
      groups: ['on call'],
    }
    await page.goto(`${url}/operations`)
    await inspect(visitor, 'login with an identity provider')
    await way.click()
    await page.getByText('operator ada@corp.example').waitFor()
    assert.equal(page.url(), `${url}/operations`)
    const cookie = await sessionIn(visitor)
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.secure], [true, 'Lax', false])
    assert.equal((await page.context().cookies(url)).length, 1, 'no login is on its way')
    assert.equal(
      (await dashboard.line(({ msg }) => msg === 'session.opened')).by,
      'ada@corp.example',
    )
    await page.getByRole('button', { name: 'Log out' }).click()

    // The provider's own session goes on.
    idp.person = { sub: 'u-1', groups: ['all'] }
    await way.click()
    assert.match(await alertOf(visitor), /the claim “groups” gives you no role here/)
    await inspect(visitor, 'no role')
    await idp.stop()
    await way.click()
    assert.match(await alertOf(visitor), /can’t be reached/)
    await sendKey(visitor, await keyOf('operator', 'on call'))
    await page.locator('.who').waitFor()
    await idp.restart()
    assert.deepEqual(
      faults.filter((fault) => !REFUSED.test(fault)),
      [],
    )
  })

  test('a session ends within seconds of the revocation of its key', async () => {
    const { record, key } = await createKey(db, { role: 'operator', name: 'leaves' })
    const visitor = await open()
    const { page } = visitor
    await page.goto(`${url}/operations`)
    await sendKey(visitor, key)
    await page.locator('.who').waitFor()
    await revokeKey(db, record.id)
    const revokedAt = performance.now()
    await until('the session has ended', async () => {
      await page.reload()
      return page.url().includes('/login')
    })
    assert.ok(performance.now() - revokedAt < 6_000)
  })

  test('a page or a form whose session has expired leads to the login, and from there back', async () => {
    const visitor = await enter()
    const { page } = visitor
    await sessions.close(visitor.session)
    // As if somebody looked at its tab again: then the page refreshes itself.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await page.waitForURL(`${url}/login?to=%2Foperations`)
    await sendKey(visitor, await keyOf('viewer', 'back again'))
    await page.waitForURL(`${url}/operations`)
    await sessions.close((await sessionIn(visitor))?.value ?? '')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.waitForURL(`${url}/login?to=%2Foperations`)
  })

  test('forms, images and scripts of another site do nothing, also of a site to which the cookie goes', async (t) => {
    const visitor = await enter()
    for (const site of await startSites(t)) {
      const page = await visitor.page.context().newPage()
      await page.goto(`${site}/?${new URLSearchParams({ to: `${url}/logout` })}`)
      // Fails: no other site may read the answer.
      const options = `{ method: 'POST', mode: 'no-cors', credentials: 'include' }`
      assert.equal(
        await page.evaluate(`fetch('${url}/logout', ${options}).catch((error) => error.name)`),
        'TypeError',
      )
      await page.getByRole('button').click()
      await page.getByText('requests from other sites are refused').waitFor()
      assert.equal(page.url(), `${url}/logout`, site)
      await page.close()
    }
    assert.equal(await statusOf(visitor.session), 200)
    await visitor.page.reload()
    await visitor.page.locator('.who').waitFor()
    // A form that an earlier session left behind.
    await visitor.page.evaluate(`document.querySelector('input[name=csrf]').value = 'x'`)
    await visitor.page.getByRole('button', { name: 'Log out' }).click()
    await visitor.page.getByText('The form belongs to another session').waitFor()
  })
})

/**
 * Two other sites with a form: browsers send cookies of `SameSite=Lax` to other ports of one host,
 * and not across hosts.
 */
async function startSites(t: TestScope): Promise<string[]> {
  const server = createServer(({ url = '' }, response) => {
    const to = new URL(url, 'http://site').searchParams.get('to')
    response.setHeader('content-type', 'text/html')
    response.end(`<img src="${to}"><form method="post" action="${to}"><button>Win</button></form>`)
  })
  server.listen(0)
  await once(server, 'listening')
  t.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = Object(server.address())
  return [`http://127.0.0.1:${port}`, `http://localhost:${port}`]
}
