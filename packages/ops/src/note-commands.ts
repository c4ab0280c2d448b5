// Notes the commands that a process sends. Every request runs this, and no other part of the metrics.
import type { Counter, Histogram } from 'prom-client'

/** Makes a function that notes each command sent to a server: its name, its time, and the code of its error. */
export function noteCommands(times: Histogram<'command'>, errors: Counter<'code'>) {
  return (command: string, seconds: number, code?: string): void => {
    times.observe({ command }, seconds)
    if (code !== undefined) errors.inc({ code })
  }
}
