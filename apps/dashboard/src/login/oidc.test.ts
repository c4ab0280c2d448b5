// The whole login by an identity provider, a real one, in this process.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createSessions } from '@sluice/credentials/sessions'
import { readSettings, SettingsError } from '@sluice/process'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import {
  createBrowser,
  type Person,
  startIdentityProvider,
} from '@sluice/test-support/identity-provider'
import express from 'express'
import { type TestContext, test, vi } from 'vitest'
import { dashboardSettings } from '../settings.ts'
import { findSession, type LoginDeps, loginRoutes } from './login.ts'
import { openOidc, PENDING_MS } from './oidc.ts'

const OIDC = {
  OIDC_ISSUER: 'https://login.example/realms/staff',
  OIDC_CLIENT_ID: 'sluice',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_ROLES: 'a=b=operator , c d=viewer',
  DASHBOARD_URL: 'https://board.example',
}

interface Options {
  authMethod?: Parameters<typeof startIdentityProvider>[2]
  env?: Record<string, string>
  isLimited?: boolean
}

/**
 * Two replicas of the login, and their identity provider. Behind the login, they answer with the
 * visitor.
 */
async function open(t: TestContext, options: Options = {}) {
  const { authMethod, env, isLimited } = options
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const servers = [createServer(), createServer()]
  for (const server of servers) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  t.onTestFinished(async () => {
    for (const server of servers) server.closeAllConnections()
    for (const server of servers) server.close()
    const left = await redis.keys(`${keys.base}*`)
    if (left.length > 0) await redis.del(left)
    redis.disconnect()
  })
  const [url = '', other = ''] = servers.map(
    (server) => `http://127.0.0.1:${Object(server.address()).port}`,
  )
  const idp = await startIdentityProvider(t, url, authMethod)
  const log: Record<string, unknown>[] = []
  const settings = readSettings(dashboardSettings, {
    ...idp.settings,
    DASHBOARD_URL: `${url}/`,
    ...env,
  })
  for (const server of servers) {
    const deps: LoginDeps = {
      sessions: createSessions(redis, keys),
      keyring: {
        find: async () => ({ outcome: 'unknown' }),
        findById: async () => ({ outcome: 'unknown' }),
      },
      oidc: await openOidc(settings),
      isSecure: false,
      log: { info: (line: object, msg?: string) => void log.push({ ...line, msg }) },
    }
    const limited = loginRoutes(deps)
    const app = express()
    // Routes of its own for each request: these tests log in more often than an address may.
    app.use((...request) => (isLimited ? limited : loginRoutes(deps))(...request))
    app.use(async (request, response) =>
      response.json((await findSession(request, deps))?.visitor ?? null),
    )
    server.on('request', app)
  }
  const callback = `${url}/login/oidc/callback`
  /**
   * Goes through the login up to the address by which the identity provider sends the browser back.
   */
  const begin = (browser = createBrowser(), to = '/failures') =>
    browser
      .open(`${url}/login/oidc?to=${encodeURIComponent(to)}`, callback)
      .then((page) => page.url)
  return {
    url,
    other,
    idp,
    log,
    begin,
    callback,
    sessions: () => redis.keys(`${keys.base}session:*`),
  }
}

test('a person logs in as what the claim says, is named by a verified address, and the log says it', async (t) => {
  const { url, idp, log, callback } = await open(t)
  const logIn = (person: Person) => {
    idp.person = person
    return createBrowser().open(`${url}/login/oidc?to=/failures?x=1`)
  }
  const ada = {
    sub: 'u-1',
    email: 'ada@corp.example',
    email_verified: true,
    groups: ['all', 'support', 'on call'],
  }
  const page = await logIn(ada)
  assert.deepEqual(
    [page.url, JSON.parse(page.text)],
    [`${url}/failures?x=1`, { ...JSON.parse(page.text), role: 'operator', by: 'ada@corp.example' }],
  )
  const opened = {
    msg: 'session.opened',
    role: 'operator',
    by: 'ada@corp.example',
    how: 'oidc',
    subject: 'u-1',
  }
  assert.deepEqual(log, [opened])
  const { text } = await logIn({
    sub: 'u-2',
    email: 'ada@corp.example',
    email_verified: false,
    groups: 'support',
  })
  assert.deepEqual(
    [JSON.parse(text).role, JSON.parse(text).by],
    ['viewer', 'u-2'],
    'anybody can claim an address',
  )
  for (const groups of [undefined, [], 'all', ['operator', 'On Call'], { 'on call': true }, 7]) {
    const refused = await logIn({ sub: 'u-3', groups })
    assert.equal(refused.status, 403, JSON.stringify(groups))
    assert.match(refused.text, /claim “groups” gives you no role here/)
    assert.ok(refused.url.startsWith(callback))
  }
  assert.deepEqual(log.at(-1), { msg: 'login.refused', status: 403, reason: 'no role: u-3' })
})

test('the request has PKCE, state and nonce, new each time, and asks for the scopes', async (t) => {
  const { url, idp } = await open(t)
  const queries = await Promise.all(
    ['/', '/'].map(async (to) => {
      const { url: asked } = await createBrowser().open(
        `${url}/login/oidc?to=${to}`,
        `${idp.url}/auth`,
      )
      return Object.fromEntries(new URL(asked).searchParams)
    }),
  )
  const [one, two] = queries
  const { state, nonce, code_challenge, ...fixed } = one ?? {}
  assert.deepEqual(fixed, {
    client_id: 'sluice',
    response_type: 'code',
    redirect_uri: `${url}/login/oidc/callback`,
    scope: 'openid email groups',
    code_challenge_method: 'S256',
  })
  assert.equal(
    new Set([state, nonce, code_challenge, two?.state, two?.nonce, two?.code_challenge]).size,
    6,
  )
})

test('an address gives a role only if it was verified', async (t) => {
  const env = { OIDC_CLAIM: 'email', OIDC_ROLES: 'cn=grace=viewer , ada@corp.example=operator' }
  const { url, idp } = await open(t, { env })
  for (const [email_verified, status] of [
    [true, 200],
    [false, 403],
    ['true', 403],
    [undefined, 403],
  ] as const) {
    idp.person = { sub: 'u-1', email: 'ada@corp.example', email_verified }
    assert.equal(
      (await createBrowser().open(`${url}/login/oidc`)).status,
      status,
      String(email_verified),
    )
  }
})

test('another replica finishes what one began', async (t) => {
  const { url, other, idp, begin } = await open(t, { authMethod: 'client_secret_basic' })
  idp.person = { sub: 'u-1', groups: 'support' }
  const browser = createBrowser()
  const back = await begin(browser)
  const page = await browser.open(back.replace(url, other))
  assert.deepEqual([page.url, JSON.parse(page.text).by], [`${other}/failures`, 'u-1'])
})

test('a login ends where it began: not in another browser, not twice, not late, not on another site', async (t) => {
  const { idp, log, begin, sessions } = await open(t)
  idp.person = { sub: 'u-1', groups: 'support' }
  const [attacker, victim] = [createBrowser(), createBrowser()]
  const refused = async (browser: typeof victim, address: string, why: RegExp, message: string) => {
    const page = await browser.open(address)
    assert.deepEqual([page.status, page.url], [403, address], message)
    assert.match(`${page.text} ${log.at(-1)?.reason}`, why, message)
  }
  const BEGAN = /began in another browser, or more than ten minutes ago/
  await refused(victim, await begin(attacker), BEGAN, 'no login is on its way')
  await begin(victim)
  await refused(victim, await begin(attacker), BEGAN, 'another login is on its way')
  const back = await begin(victim)
  const pending = String(victim.cookies.get('127.0.0.1 sluice-oidc'))
  const keep = (cookie = pending) => victim.cookies.set('127.0.0.1 sluice-oidc', cookie)
  await refused(victim, back.replace(/state=[^&]*/, ''), BEGAN, 'no state')
  keep()
  await refused(victim, `${back}&code=x`, /"code".*once|parameter/, 'two codes')
  keep()
  await refused(
    victim,
    back.replace(/iss=[^&]*/, 'iss=https://elsewhere.example'),
    /"iss"/,
    'another issuer',
  )
  keep()
  await refused(
    victim,
    back.replace(/code=[^&]*/, 'error=access_denied'),
    /access_denied/,
    'the person declined',
  )
  const [token, at] = pending.split('.')
  for (const changed of [
    `${token}.${Number(at) + 1}.Lw`,
    `${token}.${at}.${Buffer.from('//x').toString('base64url')}`,
  ]) {
    keep(changed)
    await refused(victim, back, BEGAN, 'a cookie that was changed')
  }
  keep()
  vi.useFakeTimers({ now: Date.now() + PENDING_MS, toFake: ['Date'] })
  t.onTestFinished(() => void vi.useRealTimers())
  await refused(victim, back, BEGAN, 'an old login')
  vi.useRealTimers()
  assert.deepEqual(await sessions(), [])

  keep()
  assert.equal((await victim.open(back)).status, 200)
  assert.equal(victim.cookies.has('127.0.0.1 sluice-oidc'), false)
  await refused(victim, back, BEGAN, 'a login that has ended')
  keep()
  await refused(victim, back, /invalid_grant/, 'a code that was used')
  const silent = await begin(victim)
  keep()
  await refused(victim, silent, BEGAN, 'the cookie of an earlier login')
  assert.equal((await sessions()).length, 1)
})

test('a login leads to no other site', async (t) => {
  const { url, idp } = await open(t)
  idp.person = { sub: 'u-1', groups: 'support' }
  for (const to of [
    '//elsewhere.example/',
    'https://elsewhere.example/',
    '/\\elsewhere.example',
    `/${'x'.repeat(3_000)}`,
  ]) {
    const page = await createBrowser().open(`${url}/login/oidc?to=${encodeURIComponent(to)}`)
    assert.deepEqual([page.status, page.url], [200, `${url}/`], to)
  }
})

test('an ID token of another issuer, client, login, key or time is refused', async (t) => {
  const { idp, log, begin, sessions } = await open(t)
  idp.person = { sub: 'u-1', groups: 'support' }
  const browser = createBrowser()
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  for (const [forged, why] of [
    [{ iss: 'https://elsewhere.example' }, /"iss"/],
    [{ aud: 'another client' }, /"aud"/],
    [{ nonce: 'another login' }, /"nonce"/],
    [{ exp: 1 }, /"exp"/],
    [{ sub: undefined }, /"sub"/],
    [{ sub: 'u-2' }, /"sub"/],
    [{}, /signature/],
  ] as const) {
    if (why.source === 'signature') idp.key = other
    idp.forge = (claims) => ({ ...claims, ...forged })
    const page = await browser.open(await begin(browser))
    assert.equal(page.status, 403, why.source)
    assert.match(String(log.at(-1)?.reason), why)
  }
  assert.deepEqual(await sessions(), [])
})

test('while the identity provider is unavailable, or another one answers, the login says so and offers a key', async (t) => {
  const { url, other, idp, log, begin } = await open(t)
  idp.person = { sub: 'u-1', groups: 'support' }
  const browser = createBrowser()
  const back = await begin(browser)
  await idp.stop()
  for (const address of [`${url}/login/oidc`, back.replace(url, other)]) {
    const page = await browser.open(address)
    assert.equal(page.status, 503)
    assert.match(page.text, /localhost:\d+ can’t be reached, .*Log in by a key or a link/)
    assert.match(page.text, /Key of an operator or a viewer/)
    assert.match(String(log.at(-1)?.reason), /fetch failed/)
  }
  await idp.restart()
  for (const issuer of ['https://elsewhere.example', `${idp.url}/`.repeat(2)]) {
    idp.pretend = { issuer }
    assert.equal((await browser.open(`${url}/login/oidc`)).status, 503)
  }
  idp.pretend = undefined
  assert.equal((await browser.open(`${url}/login/oidc`)).status, 200)
})

test('the issuer of all tenants of Microsoft, whose tokens name any tenant, is refused', async (t) => {
  const OIDC_ISSUER = 'https://login.microsoftonline.com/common/v2.0'
  const env = { ...OIDC, OIDC_ISSUER }
  const oidc = await openOidc(readSettings(dashboardSettings, env))
  const issuer = OIDC_ISSUER.replace('common', '{tenantid}')
  const metadata = { issuer, authorization_endpoint: `${OIDC_ISSUER}/authorize` }
  vi.stubGlobal('fetch', async () => Response.json(metadata))
  t.onTestFinished(() => void vi.unstubAllGlobals())
  const refused = Object(await oidc?.begin('/'))
  assert.deepEqual([refused.status, refused.reason], [503, `the issuer is ${issuer}`])
})

test('an address finishes ten logins a minute at most, and links of other sites use up none of them', async (t) => {
  const { idp, begin, callback } = await open(t, { isLimited: true })
  idp.person = { sub: 'u-1', groups: 'nothing' }
  const browser = createBrowser()
  for (let opened = 0; opened < 11; opened++) {
    await begin(browser)
    assert.equal((await browser.open(`${callback}?code=x&state=x`)).status, 403)
  }
  const finish = async () => (await browser.open(await begin(browser))).status
  for (let tried = 0; tried < 10; tried++) assert.equal(await finish(), 403)
  assert.equal(await finish(), 429)
})

test('settings of the identity provider that can’t be used are named', () => {
  const faultsOf = (env: Record<string, string>) => {
    try {
      readSettings(dashboardSettings, env)
    } catch (error) {
      if (error instanceof SettingsError) return error.message.match(/(?<=^ {2})[A-Z_]+/gm)
      throw error
    }
    return []
  }
  const { OIDC_ISSUER } = OIDC
  assert.deepEqual(faultsOf({ OIDC_ISSUER }), [
    'DASHBOARD_URL',
    'OIDC_CLIENT_ID',
    'OIDC_CLIENT_SECRET',
    'OIDC_ROLES',
  ])
  for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'])
    assert.deepEqual(faultsOf({ [name]: 'x' }), ['OIDC_ISSUER'])
  assert.deepEqual(faultsOf(OIDC), [])
  for (const issuer of [
    'http://login.example',
    'login.example',
    'https://',
    'https://a:b:c',
    'http://localhost.example',
    'https://a/?b',
  ])
    assert.deepEqual(faultsOf({ ...OIDC, OIDC_ISSUER: issuer }), ['OIDC_ISSUER'], issuer)
  for (const roles of [
    'ops',
    'ops=admin',
    '=operator',
    'ops=operator,',
    'ops=operator,=viewer',
    'ops=operator;support=viewer2',
  ])
    assert.deepEqual(faultsOf({ ...OIDC, OIDC_ROLES: roles }), ['OIDC_ROLES'], roles)
  assert.deepEqual(faultsOf({ ...OIDC, OIDC_SCOPE: 'email openidx' }), ['OIDC_SCOPE'])
})
