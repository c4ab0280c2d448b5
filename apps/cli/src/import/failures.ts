// Says how an import that did not complete ended, and what the user can do about it.
import { SluiceProblem, SluiceUnreachable } from '@sluice/client'
import { FormatError } from '@sluice/formats'
import { UserError } from '../errors.ts'
import type { State } from './show/summary.ts'

export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

export class TooManyErrors extends Error {
  override readonly name = 'TooManyErrors'
}

/** An error that none of these explains is a fault of this program. */
export function failureOf(error: unknown): { state: State; problem?: string } {
  if (error instanceof Interrupted) return { state: 'interrupted' }
  if (error instanceof TooManyErrors) return { state: 'gave_up', problem: error.message }
  if (error instanceof SluiceProblem) return { state: 'failed', problem: problemOf(error) }
  if (error instanceof SluiceUnreachable)
    return { state: 'failed', problem: `${error.message} Check --url, and that the service runs.` }
  if (error instanceof UserError || error instanceof FormatError) return { state: 'failed', problem: error.message }
  const ofSystem = systemProblem(error)
  return ofSystem === undefined
    ? { state: 'crashed', problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    : { state: 'failed', problem: ofSystem }
}

function problemOf(error: SluiceProblem): string {
  const advice =
    error.status === 403 ? ' Check the key (SLUICE_API_KEY, --key-file): it must be one of an importer.' : ''
  return `The service refused: ${error.message}${advice}`
}

/** What the operating system refused, such as room on the disk. */
function systemProblem(error: unknown): string | undefined {
  const { code, path } = Object(error)
  const place = typeof path === 'string' ? ` (${path})` : ''
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk is full${place}. Free some space, or name a folder of another disk with --state-dir (checkpoint and rejected file) or --temp-dir (sorting), and run the same command again.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `A file can't be written${place}: ${messageOf(error)}. Name a folder that can be written with --state-dir (checkpoint and rejected file) or --temp-dir (sorting).`
    default:
      return typeof code === 'string' && /^E[A-Z]+$/.test(code) ? messageOf(error) : undefined
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
