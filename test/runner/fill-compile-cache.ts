import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const apps = fileURLToPath(new URL('../../apps', import.meta.url))

/** Each app loads all of its modules, then refuses this setting and exits. */
const REFUSED = { QUEUE: ':' }

/**
 * Loads each app once into the compile cache of this Node. A process writes the cache when it
 * exits, and most tests kill theirs: without this, each process would compile its thousand modules,
 * which takes a third more CPU. A cache that is not empty may have only the modules of the runner.
 */
export async function fillCompileCache({
  PATH,
  NODE_COMPILE_CACHE,
}: NodeJS.ProcessEnv): Promise<void> {
  if (NODE_COMPILE_CACHE === undefined) return
  const filled = join(NODE_COMPILE_CACHE, `filled-${process.version}`)
  if (existsSync(filled)) return
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
  await writeFile(filled, '')
}
