import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const apps = fileURLToPath(new URL('../../apps', import.meta.url))

/** Each app loads all of its modules, then refuses this setting and exits. */
const REFUSED = { QUEUE: ':' }

/**
 * Loads each app once if the compile cache is empty, as on a clean clone. A process writes the
 * cache when it exits, and most tests kill theirs: without this, each process of the first minutes
 * would compile its thousand modules.
 */
export async function fillCompileCache({
  PATH,
  NODE_COMPILE_CACHE,
}: NodeJS.ProcessEnv): Promise<void> {
  if (NODE_COMPILE_CACHE === undefined || globSync('*/*', { cwd: NODE_COMPILE_CACHE }).length > 0)
    return
  const env = { PATH, NODE_COMPILE_CACHE, ...REFUSED }
  const mains = globSync('*/src/main.ts', { cwd: apps })
  await Promise.all(
    mains.map((main) =>
      once(
        spawn(process.execPath, [join(apps, main), '--help'], { env, stdio: 'ignore' }),
        'close',
      ),
    ),
  )
}
