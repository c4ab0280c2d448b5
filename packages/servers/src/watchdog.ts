import { spawn } from 'node:child_process'

/** `read` ends when the pipe from this process closes, which is what its death does, however it dies. */
const script = `
read -r _
kill -TERM -"$1" 2>/dev/null
left="$2"
while [ "$left" -gt 0 ] && kill -0 -"$1" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
kill -KILL -"$1" 2>/dev/null
`

/**
 * Ends a process group when this process is gone, even by SIGKILL: a shell beside it waits for that.
 * SIGTERM first, SIGKILL after `graceMs` milliseconds. A watchdog that dies is replaced.
 */
export function watchGroup(group: number, graceMs: number): { release(): void } {
  let released = false
  let shell = start()

  function start() {
    const started = spawn('sh', ['-c', script, 'watchdog', String(group), String(Math.ceil(graceMs / 100))], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    started.once('error', () => {})
    started.stdin.once('error', () => {})
    started.once('exit', () => {
      if (!released) shell = start()
    })
    return started
  }

  return {
    release() {
      released = true
      shell.kill('SIGKILL')
    },
  }
}
