// Runs work that may keep the event loop busy in a child process, so that a signal can end it at
// any time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'

/** The child is started under this name, by which it recognises itself. */
const CHILD = 'sluice-apart'
/** After a signal, the child sends a sign of life this often while it stops… */
const ALIVE_MS = 200
/**
 * …and is killed if it has sent none for this time: it is parsing, and would notice the signal only
 * afterwards.
 */
const SILENCE_MS = 1_500
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

interface Killed {
  /** The exit code of a child that was killed. */
  code: number
  /** Called when the child was killed: it then leaves temporary files, and prints nothing. */
  ended: (pid: number | undefined) => Promise<void>
}

/**
 * Runs a program in a child process that has the same arguments as this one, and takes over its
 * exit code. Only the child loads the program.
 */
export async function runApart(load: () => Promise<unknown>, killed: Killed): Promise<void> {
  if (process.argv0 !== CHILD) return await runChild(killed)
  // If the parent was killed, this process must end as well.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  process.channel?.unref()
  const sayAlive = () => void setInterval(() => process.send?.('alive'), ALIVE_MS).unref()
  for (const signal of SIGNALS) process.once(signal, sayAlive)
  await load()
}

async function runChild({ code, ended }: Killed): Promise<void> {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    argv0: CHILD,
  })
  let heardAt = 0
  let isKilled = false
  let watch: NodeJS.Timeout | undefined
  const killSilent = () => {
    if (performance.now() - heardAt < SILENCE_MS) return
    isKilled = true
    child.kill('SIGKILL')
  }
  const forward = (signal: NodeJS.Signals) => {
    child.kill(signal)
    if (watch !== undefined) return
    heardAt = performance.now()
    watch = setInterval(killSilent, ALIVE_MS)
  }
  child.on('message', () => {
    heardAt = performance.now()
  })
  for (const signal of SIGNALS) process.on(signal, forward)
  try {
    await once(child, 'exit')
    const { exitCode, signalCode } = child
    process.exitCode = isKilled
      ? code
      : (exitCode ?? 128 + constants.signals[signalCode ?? 'SIGKILL'])
    if (isKilled) await ended(child.pid)
  } finally {
    clearInterval(watch)
    for (const signal of SIGNALS) process.off(signal, forward)
  }
}
