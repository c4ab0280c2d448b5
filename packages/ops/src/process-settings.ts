import { setting } from './setting.ts'

/** What the API and the workers must agree on. */
export const waitSetting = setting.number({
  env: 'WAIT_SECONDS',
  description:
    'How long the API lets a caller wait; results that nobody was told of are kept twice as long. The same for API and workers.',
  default: 30,
  min: 0.1,
  max: 3_600,
})

/** What every process of Sluice can be told. Each app declares its own besides. */
export const processSettings = {
  redisUrl: setting.url({
    env: 'REDIS_URL',
    description: 'Redis, where accepted requests wait for a worker.',
    default: 'redis://127.0.0.1:6379',
    protocols: ['redis:', 'rediss:'],
    secret: true,
  }),
  mongodbUrl: setting.url({
    env: 'MONGODB_URL',
    description: 'MongoDB, where sources, quotes and keys are stored; its path names the database.',
    default: 'mongodb://127.0.0.1:27017/sluice',
    protocols: ['mongodb:', 'mongodb+srv:'],
    secret: true,
  }),
  queue: setting.text({
    env: 'QUEUE',
    description: 'The queue that carries requests from the API to the workers.',
    default: 'ingest',
    maxLength: 100,
    // BullMQ joins the parts of its Redis keys with colons.
    pattern: /^[\w.-]+$/,
    bound: 'at most 100 letters, digits, dots, dashes and underscores',
  }),
  logLevel: setting.choice({
    env: 'LOG_LEVEL',
    description: 'The least severe log lines that are written.',
    default: 'info',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
  }),
  adminPort: setting.wholeNumber({
    env: 'ADMIN_PORT',
    description: 'The port of `/livez`, `/readyz` and `/metrics`; 0 takes any free one.',
    default: 9464,
    max: 65_535,
  }),
  adminHost: setting.text({
    env: 'ADMIN_HOST',
    description: 'The address that the admin port listens on. It has no login: open it to your own network at most.',
    default: '127.0.0.1',
    maxLength: 253,
  }),
  shutdownGraceSeconds: setting.number({
    env: 'SHUTDOWN_GRACE_SECONDS',
    description: 'How long a process that was told to stop may finish what it has.',
    default: 20,
    min: 1,
    max: 3_600,
  }),
}
