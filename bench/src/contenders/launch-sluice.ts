import { join } from 'node:path'
import { freePort } from '@sluice/local'
import { launchContender } from './launch-contender.ts'

/** Starts one process of Sluice from the checkout `root`; `url` is the URL of an API. */
export async function launchSluice(
  app: 'api' | 'worker',
  {
    root,
    folder,
    port,
    env,
  }: { root: string; folder: string; port: number; env: Record<string, string> },
) {
  const adminPort = await freePort()
  const launched = await launchContender({
    main: join(root, 'apps', app, 'src/main.ts'),
    name: `${env.QUEUE}-${app}-${port}`,
    folder,
    env: { ...env, PORT: String(port), ADMIN_PORT: String(adminPort) },
  })
  return { launched, url: `http://127.0.0.1:${port}`, admin: `http://127.0.0.1:${adminPort}` }
}
