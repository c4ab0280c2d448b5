// Declares the dashboard's settings.
import { processSettings, setting } from '@sluice/ops'

const { redisUrl, queue, logLevel, adminPort, adminHost, shutdownGraceSeconds } = processSettings

/** The dashboard's settings. It has no store, so it ignores the settings of that. */
export const dashboardSettings = {
  redisUrl,
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
    description: 'The address that the dashboard listens on. It has no login yet: open it to operators only.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  hosts: setting.text({
    env: 'DASHBOARD_HOSTS',
    description:
      'The host names by which browsers may reach the dashboard, with commas between them. Without it: the address that it listens on, localhost, 127.0.0.1 and [::1].',
    default: null,
    pattern: /^[\w.:[\]-]+( *, *[\w.:[\]-]+)*$/,
    bound: 'host names without ports, with commas between them',
  }),
  shutdownGraceSeconds,
}
