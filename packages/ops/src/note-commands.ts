// Notes the commands that a request has sent. Apart from the declarations, which a process needs at its start alone.
import type { Counter, Histogram } from 'prom-client'

/** Makes a function that notes each command that was sent to a server: its name, its time, and the code of its error. */
export function noteCommands(times: Histogram<'command'>, errors: Counter<'code'>) {
  return (command: string, seconds: number, code?: string): void => {
    times.observe({ command }, seconds)
    if (code !== undefined) errors.inc({ code })
  }
}
