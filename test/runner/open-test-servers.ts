import { openServers } from '@sluice/servers'

/** x */
export async function openTestServers({
  dataDir,
  env,
  say,
}: {
  dataDir: string
  env: NodeJS.ProcessEnv
  say: (line: string) => void
}) {
  return openServers({ dataDir, durable: false, env, say })
}
