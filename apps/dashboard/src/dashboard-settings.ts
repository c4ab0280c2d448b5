import { processSettings, setting } from '@sluice/ops'

const { redisUrl, queue, logLevel, shutdownGraceSeconds } = processSettings

/** What the dashboard can be told. It has no metrics and no store, so the settings of those are none of its own. */
export const dashboardSettings = {
  redisUrl,
  queue,
  logLevel,
  port: setting.wholeNumber({
    env: 'PORT',
    description: 'The port of the dashboard; 0 takes any free one.',
    default: 3001,
    max: 65_535,
  }),
  host: setting.text({
    env: 'HOST',
    description: 'The address that the dashboard listens on. It has no login yet: open it to nobody but operators.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  shutdownGraceSeconds,
}
