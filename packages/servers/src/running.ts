/** Something that runs until it dies or is stopped. */
export interface Running {
  /** Settles when it has ended, however it ended, with how: `exit code 1`, `killed by SIGKILL`. */
  readonly died: Promise<string>
  /** Ends it and waits until it is gone; may be called twice. Once `hurry` aborts, it is no longer asked but killed. */
  stop(hurry?: AbortSignal): Promise<void>
}
