/** Where one server runs. */
export interface Spot {
  /** Holds its data, absolute. */
  readonly folder: string
  /** On 127.0.0.1. */
  readonly port: number
  /** Whether what it acknowledged must outlive its own SIGKILL. */
  readonly durable: boolean
}

/** A program found on this machine that can be started as Redis or as MongoDB. */
export interface Engine {
  /** As people know it, with its version and where it comes from. */
  readonly title: string
  /** Its folder's name: engines don't read each other's files, so each has a folder of its own. */
  readonly folder: string
  /** What people should know before they rely on it. */
  readonly note?: string
  command(spot: Spot): { readonly command: string; readonly args: readonly string[] }
  /** Clears away what an earlier run that was cut short may have left. */
  prepare?(spot: Spot): Promise<void>
  /** Whether it serves now; asked again and again until it does. */
  isReady(spot: Spot): Promise<boolean>
}

/** One of the ways to get an engine. */
export interface Way {
  readonly name: string
  /** The engine, or why this way is closed here. */
  find(): Promise<Engine | Missing>
}

export interface Missing {
  readonly missing: string
}

/** What the ways need to know of this machine. */
export interface Machine {
  /** The folders that programs are looked for in, as in the variable PATH. */
  readonly path: string
  /** Holds what is downloaded once for all projects of this user. */
  readonly cacheDir: string
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}
