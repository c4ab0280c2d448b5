// A provider finds a program that can serve as Redis or as MongoDB. The first provider whose
// program starts is used.

/** Where a server runs: the absolute path of its data, and a port on 127.0.0.1. */
export interface Location {
  readonly folder: string
  readonly port: number
  /** Whether acknowledged writes must survive a SIGKILL of the server. */
  readonly durable: boolean
  /** For tests: whether MongoDB accepts `configureFailPoint`, which makes other commands fail. */
  readonly testCommands?: boolean
}

/** A program on this machine that can be started as Redis or as MongoDB. */
export interface Engine {
  /** The engine's name, version and origin, for people. */
  readonly title: string
  /**
   * The name of the engine's data folder. Each engine has its own, because engines can't read each
   * other's files.
   */
  readonly folder: string
  /** A caution for people who would rely on the engine. */
  readonly note?: string
  command(location: Location): { readonly command: string; readonly args: readonly string[] }
  /** A server that uses more memory than this is restarted. */
  readonly maxBytes?: number
  /** Removes leftovers of an earlier run that was cut short. */
  prepare?(location: Location): Promise<void>
  /** Returns whether the server answers. Called again until it does. */
  isReady(location: Location): Promise<boolean>
}

export interface Provider {
  readonly name: string
  /** Throws an error that says why this provider has no engine here. */
  find(): Promise<Engine>
}

export interface Machine {
  /** The folders to search for programs, in the form of the variable PATH. */
  readonly path: string
  /** The folder of downloads that all projects of this user share. */
  readonly cacheDir: string
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/**
 * The named server does not answer, or no provider has a server on this machine. The message says
 * why.
 */
export class NoServer extends Error {
  override readonly name = 'NoServer'
}

/**
 * An engine does not start on its own earlier data, or another Sluice process already runs a server
 * on the data. No other engine is tried, because it would start with empty data.
 */
export class UnusableData extends Error {
  override readonly name = 'UnusableData'
}

const REMEDY =
  'Install one of them, or Python 3.11 to 3.13 for trial servers, or name servers of your own by REDIS_URL and MONGODB_URL.'

/**
 * Tries the providers in order: calls `use` with the engine that a provider finds, and returns the
 * first result.
 * @throws {NoServer | UnusableData} or the signal's reason.
 */
export async function useFirstProvider<T>(
  server: string,
  providers: readonly Provider[],
  use: (engine: Engine) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const reasons: string[] = []
  for (const provider of providers) {
    try {
      return await use(await provider.find())
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UnusableData) throw error
      reasons.push(`${provider.name}: ${error instanceof Error ? error.message : error}`)
    }
  }
  const list = reasons.map((reason) => `- ${reason}`).join('\n')
  throw new NoServer(
    `${server} was not found on this machine, and could not be installed:\n${list}\n${REMEDY}`,
  )
}
