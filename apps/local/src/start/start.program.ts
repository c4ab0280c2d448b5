import { connectStore } from '@sluice/store'
import { listenForStop } from '@sluice/terminal'
import { start } from './start.ts'

const [folder = '', port = '', mains = ''] = process.argv.slice(2)
const { stopping, hurry } = listenForStop()
const say = (line: string) => console.log(line)
const { REDIS_URL, MONGODB_URL, PATH, XDG_CACHE_HOME, HOME, TRACE, GRACE_MS = '5000' } = process.env
const env = { REDIS_URL, MONGODB_URL, PATH, XDG_CACHE_HOME, HOME, TRACE }
try {
  const options = {
    folder,
    env,
    host: '127.0.0.1',
    port: Number(port),
    graceMs: Number(GRACE_MS),
    mains: JSON.parse(mains),
  }
  await start({
    ...options,
    workers: 2,
    connectStore,
    createLink: async () => 'token',
    checkRedis: async () => {},
    say,
    stopping,
    hurry,
  })
} catch (error) {
  console.log(String(error))
  process.exitCode = 1
}
