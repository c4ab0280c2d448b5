// The login by an identity provider with OpenID Connect: an authorization code with PKCE, state and
// nonce.
import { hash, randomBytes } from 'node:crypto'
import type { Visitor } from '@sluice/credentials/sessions'
import type { Settings } from '@sluice/process'
import type { ClientAuth } from 'openid-client'
import type { oidcSettings } from '../settings.ts'

/**
 * Why nobody was logged in.
 * @param reason is only logged.
 */
export const refused = (status: number, refusal: string, reason?: string) => ({
  status,
  refusal,
  reason,
})
export type LoginRefusal = ReturnType<typeof refused>

export type Oidc = NonNullable<Awaited<ReturnType<typeof openOidc>>>

/** A person may take this long at the identity provider. */
export const PENDING_MS = 10 * 60_000
/** The identity provider must answer within this time. */
const TIMEOUT_SECONDS = 5
/** A longer path would not fit into a cookie. */
const MAX_PATH = 2_000

/**
 * Opens the login by the identity provider, if the settings name one. Asks the provider nothing
 * until somebody logs in, so that the dashboard can start while the provider is unavailable.
 *
 * A login in progress is stored only in a cookie of the browser. So any replica can finish the
 * login, and visitors without an account fill no memory. State, nonce and verifier are hashes of
 * the cookie: they are useless in another browser, and the login fails if the time or the path in
 * the cookie was changed.
 */
export async function openOidc(settings: Settings<typeof oidcSettings>) {
  const { url, oidcIssuer, oidcClientId, oidcClientSecret, oidcRoles, oidcScope, oidcClaim } =
    settings
  // OIDC_ISSUER needs the four others (see `needs` in `oidcSettings`), so if one is missing, no
  // provider is named.
  if (!(url && oidcIssuer && oidcClientId && oidcClientSecret && oidcRoles)) return undefined
  const client = await import('openid-client')
  const issuer = new URL(oidcIssuer)
  const redirectUri = new URL('/login/oidc/callback', url).href
  const roles = parseRoles(oidcRoles)

  const [post, basic] = [
    client.ClientSecretPost(oidcClientSecret),
    client.ClientSecretBasic(oidcClientSecret),
  ]
  const authenticate: ClientAuth = (server, ...rest) => {
    const offersPost = server.token_endpoint_auth_methods_supported?.includes('client_secret_post')
    return (offersPost ? post : basic)(server, ...rest)
  }

  /**
   * Reads the provider's metadata again for each step, and thereby learns whether the provider can
   * be reached.
   */
  async function discover() {
    const execute = [client.enableNonRepudiationChecks]
    if (issuer.protocol === 'http:') execute.push(client.allowInsecureRequests)
    const options = { execute, timeout: TIMEOUT_SECONDS }
    const config = await client.discovery(
      issuer,
      oidcClientId ?? '',
      undefined,
      authenticate,
      options,
    )
    // openid-client would accept Microsoft's issuer for all tenants. Then administrators of any
    // tenant could give roles.
    const { issuer: found } = config.serverMetadata()
    if (new URL(found).href !== issuer.href) throw new Error(`the issuer is ${found}`)
    return config
  }

  const UNREACHABLE = `${issuer.host} can’t be reached, or is not what OIDC_ISSUER says. Log in by a key or a link.`
  const unreachable = (error: unknown) => refused(503, UNREACHABLE, reasonOf(error))

  return {
    /** The identity provider's name for people. */
    name: issuer.host,

    /**
     * Begins a login after which the person gets to a path. Returns the address of the identity
     * provider's page, and the cookie of the login.
     */
    async begin(to: string): Promise<{ url: string; cookie: string } | LoginRefusal> {
      try {
        const path = Buffer.from(to.length > MAX_PATH ? '/' : to).toString('base64url')
        const cookie = `${randomBytes(32).toString('base64url')}.${Date.now()}.${path}`
        const { state, nonce, verifier } = secretsOf(cookie)
        const asked = client.buildAuthorizationUrl(await discover(), {
          redirect_uri: redirectUri,
          scope: oidcScope,
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        })
        return { url: asked.href, cookie }
      } catch (error) {
        return unreachable(error)
      }
    },

    isPending,

    /**
     * Finishes a pending login.
     * @param search see `isPending`.
     */
    async finish(
      search: string,
      cookie = '',
    ): Promise<{ visitor: Visitor; subject: string; to: string } | LoginRefusal> {
      const [, , path = ''] = cookie.split('.')
      if (!isPending(search, cookie))
        return refused(
          403,
          'This login began in another browser, or more than ten minutes ago. Begin again.',
        )
      const config = await discover().catch(unreachable)
      if ('refusal' in config) return config
      try {
        const { state, nonce, verifier } = secretsOf(cookie)
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier }
        const tokens = await client.authorizationCodeGrant(
          config,
          new URL(search, redirectUri),
          checks,
        )
        const identity = tokens.claims() ?? { sub: '' }
        const hasMore = config.serverMetadata().userinfo_endpoint !== undefined
        const more = hasMore
          ? await client.fetchUserInfo(config, tokens.access_token, identity.sub)
          : {}
        const claims = { ...more, ...identity }
        const visitor = visitorOf(claims, oidcClaim, roles)
        if (visitor !== undefined)
          return { visitor, subject: identity.sub, to: Buffer.from(path, 'base64url').toString() }
        const refusal = `${issuer.host} knows you, but the claim “${oidcClaim}” gives you no role here.`
        return refused(403, refusal, `no role: ${identity.sub}`)
      } catch (error) {
        const refusal = `The login by ${issuer.host} failed. The log says why. Begin again, or log in by a key or a link.`
        return refused(403, refusal, reasonOf(error))
      }
    },
  }
}

/**
 * Returns whether the browser with this cookie has a login in progress.
 *
 * @param search the query with which the identity provider sent the browser back.
 */
function isPending(search: string, cookie = ''): boolean {
  const [, begunAt] = cookie.split('.')
  const isFresh = Number(begunAt) > Date.now() - PENDING_MS
  return isFresh && new URLSearchParams(search).get('state') === secretsOf(cookie).state
}

function secretsOf(cookie: string): Record<'state' | 'nonce' | 'verifier', string> {
  const secret = (purpose: string) => hash('sha256', `${purpose} ${cookie}`, 'base64url')
  return { state: secret('state'), nonce: secret('nonce'), verifier: secret('verifier') }
}

/** Reads pairs such as `a=operator, b=viewer`. A value may contain equals signs. */
function parseRoles(text: string): Map<unknown, string> {
  return new Map(
    text.split(/ *, */).map((pair) => [pair.replace(/=\w+$/, ''), pair.replace(/^.*=/, '')]),
  )
}

type Claims = Readonly<Record<string, unknown>> & { sub: string }

/**
 * Returns a visitor with the highest role that the claim's values have. Returns undefined if they
 * have none. An e-mail address counts, as a name or as the claim, only if it is verified, because
 * anybody can choose an unverified one.
 */
function visitorOf(
  claims: Claims,
  claim: string,
  roles: ReadonlyMap<unknown, string>,
): Visitor | undefined {
  const { email, email_verified, sub } = claims
  const address = email_verified === true && typeof email === 'string' ? email : undefined
  const values = [claim === 'email' ? address : claims[claim]].flat()
  const given = values.map((value) => roles.get(value))
  const role = (['operator', 'viewer'] as const).find((one) => given.includes(one))
  return role && { role, by: address ?? sub }
}

/**
 * Returns only the message of an error for the log, because its cause may have tokens and claims.
 */
function reasonOf(error: unknown): string {
  const { message, error: code, cause } = Object(error)
  return [message, code, Object(cause).message]
    .filter((part) => typeof part === 'string')
    .join(': ')
}
