import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import Provider, { type ClientAuthMethod } from 'oidc-provider'
import type { TestScope } from './test-scope.ts'

/** Claims about a person. */
export type Person = Readonly<Record<string, unknown>> & { sub: string }

type Claims = Record<string, unknown>

/** The settings by which the dashboard logs in at it, for values of the claim `groups`. */
const CLIENT = {
  OIDC_CLIENT_ID: 'sluice',
  OIDC_CLIENT_SECRET: 'a secret: 100 % of it',
  OIDC_SCOPE: 'openid email groups',
  OIDC_ROLES: 'on call=operator, support=viewer',
}

/**
 * Starts an identity provider that asks nobody for a password: everybody is the person of the
 * moment. It requires PKCE, and has the claims at its userinfo endpoint only, as OpenID Connect
 * Core recommends.
 */
export async function startIdentityProvider(
  t: TestScope,
  dashboardUrl: string,
  authMethod: ClientAuthMethod = 'client_secret_post',
) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const server = createServer()
  const listen = async (port: number) => {
    server.listen(port, 'localhost')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = Object(server.address())
  const idp = {
    url: `http://localhost:${port}`,
    settings: { OIDC_ISSUER: `http://localhost:${port}`, ...CLIENT },
    person: { sub: 'u-1' } as Person,
    /** Changes what ID tokens say; they are signed again by `key`. */
    forge: undefined as ((claims: Claims) => Claims) | undefined,
    key: privateKey,
    /** Changes its metadata. */
    pretend: undefined as Claims | undefined,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    restart: () => listen(port),
  }
  const provider = new Provider(idp.url, {
    clients: [
      {
        client_id: CLIENT.OIDC_CLIENT_ID,
        client_secret: CLIENT.OIDC_CLIENT_SECRET,
        redirect_uris: [`${dashboardUrl}/login/oidc/callback`],
        token_endpoint_auth_method: authMethod,
      },
    ],
    clientAuthMethods: [authMethod],
    jwks: {
      keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'key', alg: 'RS256', use: 'sig' }],
    },
    cookies: { keys: ['a key'] },
    // Seconds. Without them, it prints notices.
    ttl: {
      Interaction: 600,
      Grant: 600,
      Session: 600,
      AccessToken: 600,
      IdToken: 600,
      AuthorizationCode: 60,
    },
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...idp.person, sub }) }),
    async loadExistingGrant({ oidc }) {
      const { client, session } = oidc
      if (client === undefined || session?.accountId === undefined) return undefined
      const grant = new oidc.provider.Grant({
        clientId: client.clientId,
        accountId: session.accountId,
      })
      grant.addOIDCScope(CLIENT.OIDC_SCOPE)
      await grant.save()
      return grant
    },
  })
  provider.use(async (context, next) => {
    await next()
    const body = Object(context.body)
    if (context.path === '/token' && idp.forge !== undefined && typeof body.id_token === 'string') {
      const [head = '', payload = ''] = body.id_token.split('.')
      const forged = `${head}.${encode(idp.forge(JSON.parse(Buffer.from(payload, 'base64url').toString())))}`
      body.id_token = `${forged}.${sign('sha256', Buffer.from(forged), idp.key).toString('base64url')}`
    }
    if (context.path === '/.well-known/openid-configuration') Object.assign(body, idp.pretend)
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return void answer(request, response)
    void provider.interactionFinished(request, response, { login: { accountId: idp.person.sub } })
  })
  t.onTestFinished(() => idp.stop())
  return idp
}

/** A browser without a window: follows redirects, and keeps the cookies of each host. */
export function createBrowser() {
  const cookies = new Map<string, string>()
  return {
    cookies,
    /** Opens an address, and stops at a redirect to an address that begins with `until`. */
    async open(
      address: string,
      until?: string,
    ): Promise<{ url: string; status: number; text: string }> {
      let url = new URL(address)
      for (;;) {
        if (until !== undefined && url.href.startsWith(until))
          return { url: url.href, status: 0, text: '' }
        const own = [...cookies].filter(([key]) => key.startsWith(`${url.hostname} `))
        const cookie = own
          .map(([key, value]) => `${key.slice(url.hostname.length + 1)}=${value}`)
          .join('; ')
        const answer = await fetch(url, {
          redirect: 'manual',
          headers: { cookie, 'sec-fetch-mode': 'navigate' },
        })
        for (const set of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
          if (value === '') cookies.delete(`${url.hostname} ${name}`)
          else cookies.set(`${url.hostname} ${name}`, value)
        }
        const to = answer.headers.get('location')
        if (to === null) return { url: url.href, status: answer.status, text: await answer.text() }
        url = new URL(to, url)
      }
    },
  }
}

function encode(claims: Claims): string {
  return Buffer.from(JSON.stringify(claims)).toString('base64url')
}
