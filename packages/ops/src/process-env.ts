import type { Environment } from './read-settings.ts'

/** The environment of this process, for `main.ts` files: nothing else reads it. */
export function processEnv(): Environment {
  return process.env
}
