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
    createLink: async (address) => {
      // Loads BullMQ, which is not needed before.
      const { createUserLink } = await import('@sluice/credentials/sessions')
      return withRedis(address, (redis) => createUserLink(redis, address.queue, 'operator'))
    },
    checkRedis: (redisUrl) =>
      withRedis({ redisUrl, queue: env.QUEUE ?? '' }, async (redis) => {
        const { eviction } = redisFaults(await redis.info(), 0)
        if (eviction.length > 0) throw new UserError(eviction.join(' '))
      }),
    say: (text) => text.split('\n').forEach(print),
  }),
)
