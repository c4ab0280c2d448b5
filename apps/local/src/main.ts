// The program `start`: wires its command to this process.
import { hostname, userInfo } from 'node:os'
import { createSessions } from '@sluice/credentials/sessions'
import { redisFaults } from '@sluice/process/redis'
import { processEnv } from '@sluice/process/settings'
import { queueKeys } from '@sluice/queue'
import { connectStore } from '@sluice/store/connect'
import { createPrinter, runProgram, UserError, withRedis } from '@sluice/terminal'
import { startCommand } from './start/start-command.ts'

const env = processEnv()
const print = createPrinter((text) => process.stdout.write(text))

await runProgram(
  startCommand({
    folder: process.cwd(),
    env,
    connectStore,
    createLink: (address) =>
      withRedis(address, (redis) => {
        const by = `${userInfo().username}@${hostname()}`
        return createSessions(redis, queueKeys(address.queue)).createLink({ role: 'operator', by })
      }),
    checkRedis: (redisUrl) =>
      withRedis({ redisUrl, queue: env.QUEUE ?? '' }, async (redis) => {
        const { eviction } = redisFaults(await redis.info(), 0)
        if (eviction.length > 0) throw new UserError(eviction.join(' '))
      }),
    say: (text) => text.split('\n').forEach(print),
  }),
)
