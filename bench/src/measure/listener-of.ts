import { readdir, readFile, readlink } from 'node:fs/promises'

const LISTENING = '0A'

/**
 * The process on this machine that listens on a TCP port; undefined if no process listens, if it is
 * another user's, and on systems other than Linux.
 */
export async function listenerOf(port: number): Promise<number | undefined> {
  const sockets = await listeningSockets(port)
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter(Number.isInteger)
  for (const pid of sockets.size > 0 ? pids : []) {
    if (await holdsOne(pid, sockets)) return pid
  }
  return undefined
}

async function listeningSockets(port: number): Promise<ReadonlySet<string>> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const rows = tables.flatMap((table) => table.split('\n').map((row) => row.trim().split(/\s+/)))
  const found = rows.filter(
    ([, local, , state]) => state === LISTENING && local?.endsWith(`:${hex}`),
  )
  return new Set(found.map((row) => `socket:[${row[9]}]`))
}

async function holdsOne(pid: number, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  const files = await readdir(folder).catch(() => [])
  const links = await Promise.all(
    files.map((file) => readlink(`${folder}/${file}`).catch(() => '')),
  )
  return links.some((link) => sockets.has(link))
}
