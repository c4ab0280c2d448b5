import { openServers } from './open-servers.ts'

const [dataDir = ''] = process.argv.slice(2)
const { redisUrl, mongodbUrl } = await openServers({
  dataDir,
  durable: true,
  env: process.env,
  say: () => {},
})
process.send?.({ redisUrl, mongodbUrl })
