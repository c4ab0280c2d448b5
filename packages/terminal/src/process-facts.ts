// Asks this machine about its processes: by `/proc`, because slim images have no `ps`.
import { readFile } from 'node:fs/promises'

/**
 * Returns the parent, the command line and the bytes in RAM of a process. Returns undefined if it
 * has ended or is a zombie, and if this is no Linux.
 */
export async function processFacts(pid: number) {
  const [status = '', command = ''] = await Promise.all(
    ['status', 'cmdline'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
  ).catch(() => [])
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status)?.[1]
  const state = field('State')
  if (state === undefined || state.startsWith('Z')) return undefined
  return {
    parent: Number(field('PPid')),
    command: command.replaceAll('\0', ' ').trim(),
    bytes: Number(field('VmRSS')) * 1024,
  }
}
