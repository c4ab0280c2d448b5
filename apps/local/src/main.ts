// The program `start`: wires its command to this process.
import { redisFaults } from '@sluice/process/redis'
import { processEnv } from '@sluice/process/settings'
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
    async createLink(address, dashboardUrl) {
      // Loaded here, because BullMQ would delay the first line.
      const { createUserLink, loginLink } = await import('@sluice/credentials/sessions')
      const token = await withRedis(address, (redis) =>
        createUserLink(redis, address.queue, 'operator'),
      )
      return loginLink(dashboardUrl, token)
    },
    checkRedis: (redisUrl) =>
      withRedis({ redisUrl, queue: env.QUEUE ?? '' }, async (redis) => {
        const { eviction } = redisFaults(await redis.info(), 0)
        if (eviction.length > 0) throw new UserError(eviction.join(' '))
      }),
    say: (text) => text.split('\n').forEach(print),
  }),
)
