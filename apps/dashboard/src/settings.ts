// Declares the dashboard's settings.
import { dashboardUrlSetting, processSettings, setting } from '@sluice/process'

// The dashboard does not check Redis, because the API and the workers do.
const { redisChecks: _checks, minRedisMemory: _memory, ...common } = processSettings

/** The login by an identity provider. */
export const oidcSettings = {
  url: dashboardUrlSetting,
  oidcIssuer: setting.text({
    env: 'OIDC_ISSUER',
    description:
      'The OpenID Connect provider by which people log in. The redirect URI is /login/oidc/callback at DASHBOARD_URL.',
    default: null,
    // With plain HTTP, codes and tokens would be visible in the network.
    pattern: /^(https:\/\/[\w.-]+|http:\/\/(localhost|127\.0\.0\.1))(:\d{1,5})?(\/[^\s?#]*)?$/,
    bound: 'a URL of https, or of http on this machine, without a query',
    needs: ['DASHBOARD_URL', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_ROLES'],
  }),
  oidcClientId: setting.text({
    env: 'OIDC_CLIENT_ID',
    description: 'The name of the dashboard at the identity provider.',
    default: null,
    needs: ['OIDC_ISSUER'],
  }),
  oidcClientSecret: setting.text({
    env: 'OIDC_CLIENT_SECRET',
    description: 'The secret of the dashboard at the identity provider.',
    default: null,
    secret: true,
    needs: ['OIDC_ISSUER'],
  }),
  oidcScope: setting.text({
    env: 'OIDC_SCOPE',
    description:
      'The scopes to ask for. Some providers send the claim only for a scope such as groups.',
    default: 'openid email',
    pattern: /^(.* )?openid( .*)?$/,
    bound: 'names with spaces between them, openid among them',
  }),
  oidcClaim: setting.text({
    env: 'OIDC_CLAIM',
    description: 'The claim that has the values of OIDC_ROLES: a text or a list of texts.',
    default: 'groups',
  }),
  oidcRoles: setting.text({
    env: 'OIDC_ROLES',
    description: 'The values that make a person an operator or a viewer. Nobody else is let in.',
    default: null,
    maxLength: 20_000,
    pattern: /^[^,\s][^,]*=(operator|viewer)( *, *[^,\s][^,]*=(operator|viewer))*$/,
    bound: 'values with their roles, such as sluice-ops=operator, support=viewer',
    needs: ['OIDC_ISSUER'],
  }),
}

export const dashboardSettings = {
  ...common,
  port: setting.wholeNumber({
    env: 'PORT',
    description: 'The port of the dashboard. 0: any free one.',
    default: 3001,
    max: 65_535,
  }),
  host: setting.text({
    env: 'HOST',
    description: 'The address that the dashboard listens on, by plain HTTP.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  ...oidcSettings,
  traceUrl: setting.text({
    env: 'TRACE_URL',
    description:
      'The address of a trace, for links, such as `https://traces.example/trace/{traceId}`.',
    default: null,
    pattern: /^https?:\/\/\S*\{traceId\}\S*$/,
    bound: 'a URL of http or https with {traceId}',
  }),
  hosts: setting.text({
    env: 'DASHBOARD_HOSTS',
    description:
      'The host names by which browsers may reach the dashboard. By default: the host of DASHBOARD_URL, HOST, localhost, 127.0.0.1 and [::1].',
    default: null,
    pattern: /^[\w.:[\]-]+( *, *[\w.:[\]-]+)*$/,
    bound: 'host names without ports, with commas between them',
  }),
}
