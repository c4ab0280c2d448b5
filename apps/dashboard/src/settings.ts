// Declares the dashboard's settings.
import { dashboardUrlSetting, processSettings, setting } from '@sluice/process'

// The dashboard does not check Redis: the processes that carry requests do.
const { redisChecks: _checks, minRedisMemory: _memory, ...common } = processSettings

/** The login by an identity provider. */
export const oidcSettings = {
  url: dashboardUrlSetting,
  oidcIssuer: setting.text({
    env: 'OIDC_ISSUER',
    description:
      'The identity provider by which people log in, by OpenID Connect, such as https://login.corp.example/realms/staff. Its redirect URI is /login/oidc/callback at DASHBOARD_URL.',
    default: null,
    // Plain HTTP would show codes and tokens to the network.
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
    description: 'What the identity provider is asked for. Some provide the claim only by a scope such as groups.',
    default: 'openid email',
    pattern: /^(.* )?openid( .*)?$/,
    bound: 'names with spaces between them, openid among them',
  }),
  oidcClaim: setting.text({
    env: 'OIDC_CLAIM',
    description: 'The claim about a person that OIDC_ROLES names values of: a text or a list of texts.',
    default: 'groups',
  }),
  oidcRoles: setting.text({
    env: 'OIDC_ROLES',
    description: 'Which values of the claim make an operator or a viewer. Nobody else is let in.',
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
    description: 'The port of the dashboard; 0 takes any free one.',
    default: 3001,
    max: 65_535,
  }),
  host: setting.text({
    env: 'HOST',
    description:
      'The address that the dashboard listens on. It speaks plain HTTP: put a proxy with TLS before it for other machines.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  ...oidcSettings,
  traceUrl: setting.text({
    env: 'TRACE_URL',
    description: 'The address of a trace, for links of traced jobs. `{traceId}` stands for the id.',
    default: null,
    pattern: /^https?:\/\/\S*\{traceId\}\S*$/,
    bound: 'a URL of http or https with {traceId}',
  }),
  hosts: setting.text({
    env: 'DASHBOARD_HOSTS',
    description:
      'The host names by which browsers may reach the dashboard, with commas between them. Without it: that of DASHBOARD_URL, the address that it listens on, localhost, 127.0.0.1 and [::1].',
    default: null,
    pattern: /^[\w.:[\]-]+( *, *[\w.:[\]-]+)*$/,
    bound: 'host names without ports, with commas between them',
  }),
}
