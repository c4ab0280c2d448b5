import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'vitest'
import { processSettings } from './process-settings.ts'
import { readSettings, SettingsError, setting, withSecrets } from './settings.ts'

const declarations = {
  port: setting.wholeNumber({ env: 'PORT', description: 'A port.', default: 80, max: 65_535 }),
  share: setting.number({ env: 'SHARE', description: 'A share.', default: 0.5, max: 1 }),
  mode: setting.choice({
    env: 'MODE',
    description: 'A mode.',
    default: 'slow',
    choices: ['slow', 'fast'],
  }),
  site: setting.text({
    env: 'SITE',
    description: 'A site.',
    default: 'https://a',
    pattern: /^https:/,
    bound: 'a URL',
  }),
  hosts: setting.text({
    env: 'HOSTS',
    description: 'Hosts.',
    default: null,
    needs: ['PORT', 'SITE'],
  }),
  password: setting.text({
    env: 'PASSWORD',
    description: 'A password.',
    default: '-',
    secret: true,
    maxLength: 20,
  }),
}

function faultsOf(
  env: Record<string, string>,
  read: () => unknown = () => readSettings(declarations, env),
): SettingsError {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof SettingsError)
    return error
  }
  throw new Error('the settings were accepted')
}

test('values come from the environment, typed', () => {
  const env = {
    PORT: '8080',
    SHARE: '0.25',
    MODE: 'fast',
    SITE: 'https://example.com/',
    PASSWORD: 'sesame',
  }
  const settings: { port: number; share: number; mode: 'slow' | 'fast'; site: string } =
    readSettings(declarations, env)
  assert.deepEqual(settings, {
    port: 8080,
    share: 0.25,
    mode: 'fast',
    site: 'https://example.com/',
    hosts: null,
    password: 'sesame',
  })
})

test('an absent or blank variable means the default', () => {
  const settings = readSettings(declarations, { PASSWORD: 'sesame', PORT: ' ', MODE: '' })
  assert.deepEqual(settings, {
    port: 80,
    share: 0.5,
    mode: 'slow',
    site: 'https://a',
    hosts: null,
    password: 'sesame',
  })
})

test('every fault is named at once, by its variable', () => {
  const { message } = faultsOf({ PORT: '65536', SHARE: '-1', MODE: 'medium', SITE: 'http://a' })
  assert.deepEqual(message.match(/(?<=^ {2})[A-Z]+/gm), ['PORT', 'SHARE', 'MODE', 'SITE'])
})

test('a setting that needs others names each that is not set', () => {
  const { message } = faultsOf({ HOSTS: 'a', PORT: ' ' })
  assert.deepEqual(message.split('\n').slice(1), [
    '  PORT must be set, because HOSTS is',
    '  SITE must be set, because HOSTS is',
  ])
  assert.equal(readSettings(declarations, { HOSTS: 'a', PORT: '1', SITE: 'https://b' }).hosts, 'a')
})

for (const text of [
  '1.5',
  '1e3',
  '0x10',
  'NaN',
  'Infinity',
  '-1',
  '99999999999999999999',
  'eighty',
]) {
  test(`"${text}" is not a valid port`, () => {
    assert.match(
      faultsOf({ PORT: text, PASSWORD: 'sesame' }).message,
      /PORT must be a whole number from 0 to 65535, not "/,
    )
  })
}

test('a fault in a secret does not show it', () => {
  const { message } = faultsOf({ PASSWORD: 'far too long to be sesame' })
  assert.match(message, /PASSWORD must be text of at most 20 characters$/)
  assert.doesNotMatch(message, /sesame/)
})

test('the shared settings need nothing in the environment, and each default is one that could be set', () => {
  readSettings(processSettings, {})
  for (const { env, fallback, parse } of Object.values(processSettings)) {
    if (fallback !== null) assert.equal(parse(String(fallback)), fallback, env)
  }
})

/** @param good URLs that a setting accepts as they are. @param bad others that it refuses. */
function assertUrls({ parse }: { parse: (text: string) => unknown }, good: string, bad: string) {
  for (const url of good.split(' ')) assert.equal(parse(url), url)
  for (const url of bad.split(' ')) assert.equal(parse(url), undefined, url)
}

test('a MongoDB URL may name several hosts; a URL of another kind is refused without its password', () => {
  const good =
    'mongodb://u:p@a:1,b:2/sluice?replicaSet=rs mongodb+srv://u:p%40@c.example/ mongodb://[::1]:2?w=1 mongodb://%2Ftmp%2Fa.sock ' +
    'mongodb://CN=a,OU=b@a/x_-1?authMechanism=MONGODB-X509&authSource=$external'
  const bad =
    'http://a mongo://a MONGODB://a mongodb:/a mongodb:// a:1 "mongodb://a" mongodb://a:x mongodb://a:65536/x mongodb://u:p@p@a mongodb://u:p/p@a ' +
    'mongodb://u:p:p@a mongodb://u:50%off@a mongodb://a/x.y mongodb://a/x%20y'
  assertUrls(processSettings.mongodbUrl, good, bad)
  const { message } = faultsOf({}, () =>
    readSettings(processSettings, { REDIS_URL: 'http://:hunter2@a' }),
  )
  assert.match(message, /REDIS_URL must be a URL like redis:\/\/HOST:PORT, redis\+sentinel/)
  assert.doesNotMatch(message, /hunter2/)
})

test('a Redis URL names a server, the nodes of a cluster, or Sentinels and their name for the primary', () => {
  const good =
    'redis://a:1 rediss://u:p@a redis+cluster://a:1,[::1]:2 rediss+sentinel://u:p@a,b/main?sentinelPassword=x ' +
    'redis://:p%25/@:#@a:65535/2?x redis+sentinel://a:1/ma%69n-1.x/3 redis+cluster://u:%3F@a,b/ redis://[fe80::1%25eth0]'
  const bad =
    'redis+sentinel://a,b redis+sentinel://a/ redis+cluster:/// redis+other://a redis://:50%off@a redis://:p?@a ' +
    'redis://a:65536 redis://a:x redis://a/x redis://a,b redis+cluster://a,b:99999 redis+sentinel://a/m%/0 redis://:1'
  assertUrls(processSettings.redisUrl, good, bad)
})

test('a secret comes from the file that NAME_FILE names, and no value has white space around it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-secrets-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const url = 'redis://:hunter2@a:1'
  const env = withSecrets({
    REDIS_URL_FILE: await file('redis', `${url}\n`),
    SLUICE_API_KEY: ' key\r',
    MONGODB_URL_FILE: ' \r',
  })
  assert.equal(env.SLUICE_API_KEY, 'key')
  assert.equal(readSettings(processSettings, env).redisUrl, url)
  // A child process that gets this environment finds the secret once.
  assert.deepEqual(withSecrets(env), env)

  const faults = faultsOf({}, () =>
    withSecrets({
      REDIS_URL: url,
      REDIS_URL_FILE: join(folder, 'redis'),
      MONGODB_URL_FILE: join(folder, 'missing'),
      OIDC_CLIENT_SECRET_FILE: join(folder, 'empty'),
    }),
  )
  assert.match(faults.message, /REDIS_URL_FILE must not be set, because REDIS_URL is\n/)
  assert.match(
    faults.message,
    /MONGODB_URL_FILE names a file that can't be read: ENOENT: .*missing/,
  )
  assert.doesNotMatch(faults.message, /hunter2/)
  await file('empty', '\n')
  const empty = faultsOf({}, () => withSecrets({ OIDC_CLIENT_SECRET_FILE: join(folder, 'empty') }))
  assert.match(empty.message, /OIDC_CLIENT_SECRET_FILE names a file that is empty$/)
})

test('a process with faulty settings prints the faults, without a stack, and exits 1', async () => {
  const program = `
    import { processSettings, settingsOrExit } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)}
    settingsOrExit(processSettings)`
  const env = { ADMIN_PORT: 'x', REDIS_URL: 'hunter2' }
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  assert.equal(code, 1)
  assert.equal(
    errors,
    'The settings in the environment cannot be used:\n' +
      `  REDIS_URL must be ${processSettings.redisUrl.bound}\n` +
      '  ADMIN_PORT must be a whole number from 0 to 65535, not "x"\n',
  )
})
