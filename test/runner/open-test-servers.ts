import { type OpenServers, openServers } from '@sluice/local'

// Chooses the servers that tests share: those that the environment names, else containers, else the
// servers that `start` would choose.

type Variable = 'REDIS_URL' | 'MONGODB_URL'

/** A server that was started in a container. */
export interface StartedContainer {
  readonly url: string
  stop(): Promise<void>
}

/** Starts the server that a variable of the environment would name. */
export type Containers = Readonly<Record<Variable, () => Promise<StartedContainer>>>

export interface TestServersOptions extends Pick<OpenServers, 'dataDir' | 'env' | 'say'> {
  /** Resolves to undefined where no container engine answers. */
  readonly findContainers: () => Promise<Containers | undefined>
}

export interface TestServers {
  readonly redisUrl: string
  readonly mongodbUrl: string
  /** Once `hurry` aborts, programs are killed. */
  stop(hurry?: AbortSignal): Promise<void>
}

/**
 * Opens Redis and MongoDB for tests. Where an engine answers but a container does not start, it
 * says so and goes on without containers.
 */
export async function openTestServers({
  findContainers,
  ...options
}: TestServersOptions): Promise<TestServers> {
  const { env, say } = options
  const missing = (['REDIS_URL', 'MONGODB_URL'] as const).filter((variable) => !env[variable])
  const containers = missing.length > 0 ? await findContainers() : undefined
  const started = containers === undefined ? [] : await startAll(missing, containers, say)
  const stopContainers = async () => void (await Promise.all(started.map(({ stop }) => stop())))
  const urls = Object.fromEntries(started.map(({ variable, url }) => [variable, url]))
  try {
    const servers = await openServers({ ...options, env: { ...env, ...urls }, durable: false })
    const stop = async (hurry?: AbortSignal) => {
      await servers.stop(hurry)
      await stopContainers()
    }
    return { redisUrl: servers.redisUrl, mongodbUrl: servers.mongodbUrl, stop }
  } catch (error) {
    await stopContainers()
    throw error
  }
}

async function startAll(
  variables: readonly Variable[],
  containers: Containers,
  say: (line: string) => void,
) {
  const starting = variables.map(async (variable) => ({
    variable,
    ...(await containers[variable]()),
  }))
  const settled = await Promise.allSettled(starting)
  for (const [at, variable] of variables.entries()) {
    const result = settled[at]
    say(
      result?.status === 'rejected'
        ? `${variable}: no container started (${result.reason})`
        : `${variable}: a container of the tests' own`,
    )
  }
  return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}
