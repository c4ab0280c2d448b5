// Declares the dashboard's settings.
import { dashboardUrlSetting, processSettings, searchSetting, setting } from '@sluice/ops'

const { redisUrl, mongodbUrl, queue, logLevel, adminPort, adminHost, shutdownGraceSeconds } = processSettings

/** The dashboard's settings. */
export const dashboardSettings = {
  redisUrl,
  mongodbUrl,
  searchQuotes: searchSetting,
  queue,
  logLevel,
  adminPort,
  adminHost,
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
  url: dashboardUrlSetting,
  hosts: setting.text({
    env: 'DASHBOARD_HOSTS',
    description:
      'The host names by which browsers may reach the dashboard, with commas between them. Without it: that of DASHBOARD_URL, the address that it listens on, localhost, 127.0.0.1 and [::1].',
    default: null,
    pattern: /^[\w.:[\]-]+( *, *[\w.:[\]-]+)*$/,
    bound: 'host names without ports, with commas between them',
  }),
  shutdownGraceSeconds,
}
