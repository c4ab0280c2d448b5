// A Redis or MongoDB that a test may kill, stop and cut off.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, openServers, type ServerName, type Servers } from '@sluice/local'
import { processFacts } from '@sluice/terminal'
import { createTcpProxy } from './tcp-proxy.ts'

/** A Redis or MongoDB of a test file's own, which it may kill. */
export interface PrivateServer {
  /** It never changes. */
  url: string
  /** Kills it. Connections break at once, and new ones are refused. */
  kill(): Promise<void>
  /** Starts it again with its data. */
  startAgain(): Promise<void>
  /** Kills it, keeps a copy of its data as it is now, and starts it again. */
  keepCopy(): Promise<void>
  /** Kills it, and starts it again on the copy: nothing that happened since is there. */
  restoreCopy(): Promise<void>
  /**
   * Cuts it off without a word: connections stay open, new ones are accepted, and nothing is
   * forwarded. End this by `thaw` or `kill` before the test file ends.
   */
  freeze(): void
  thaw(): void
  /** From now on delays everything that clients send by so many ms. */
  slow(ms: number): void
  /** Sends a signal to its process. Throws where it runs in a container. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void>
  /** Stops it for good and removes its data. */
  end(): Promise<void>
}

/** The URL of the other server is given, so that no second one is started. */
const OTHER = { Redis: 'MONGODB_URL', MongoDB: 'REDIS_URL' } as const

/**
 * @param other the URL of a running server of the other kind.
 * @param testCommands whether MongoDB takes `configureFailPoint`.
 */
export async function openPrivateServer(
  name: ServerName,
  other: string,
  { testCommands = false } = {},
): Promise<PrivateServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-fault-'))
  const copyDir = `${dataDir}-copy`
  const port = await freePort()
  const proxy = createTcpProxy(port)
  const urlOf = ({ redisUrl, mongodbUrl }: Servers) => (name === 'Redis' ? redisUrl : mongodbUrl)
  let servers = await start()

  async function start(): Promise<Servers> {
    const env = { PATH: process.env.PATH, [OTHER[name]]: other }
    const started = await openServers({ dataDir, durable: true, testCommands, env, say: () => {} })
    await proxy.open(Number(new URL(urlOf(started)).port))
    return started
  }
  async function kill(): Promise<void> {
    // No longer asked, but killed.
    await Promise.all([servers.stop(AbortSignal.abort()), proxy.shut()])
  }

  const url = new URL(urlOf(servers))
  url.port = String(port)
  return {
    url: url.href,
    kill,
    async startAgain() {
      servers = await start()
    },
    async keepCopy() {
      await kill()
      await cp(dataDir, copyDir, { recursive: true })
      servers = await start()
    },
    async restoreCopy() {
      await kill()
      await rm(dataDir, { recursive: true, force: true })
      await cp(copyDir, dataDir, { recursive: true })
      servers = await start()
    },
    freeze: proxy.freeze,
    thaw: proxy.thaw,
    slow: proxy.slow,
    async signal(name) {
      process.kill(await childWith(new URL(urlOf(servers)).port), name)
    },
    async end() {
      await kill()
      for (const folder of [dataDir, copyDir]) await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * The child of this process whose command line names this port. Redis writes its own:
 * `valkey-server 127.0.0.1:port`.
 */
async function childWith(port: string): Promise<number> {
  const children = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
  for (const pid of children.trim().split(' ').map(Number)) {
    if ((await processFacts(pid))?.command.includes(port)) return pid
  }
  throw new Error(`no child listens on port ${port}`)
}
