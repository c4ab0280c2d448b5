import { parseArgs } from 'node:util'

/** The command line of `pnpm bench`. */
export interface Options {
  quick: boolean
  /** Names of scenarios; an empty list means all. */
  only: string[]
  rounds?: number
  requests?: number
  /** The folder for results, instead of `bench/results`. */
  out?: string
  /** Another checkout of Sluice, which is measured beside this one instead of the scenarios. */
  against?: string
  /** Measures nothing; writes the existing results into the documents. */
  document: boolean
}

/** The command line is invalid; the message names the fault. */
export class OptionsError extends Error {
  override readonly name = 'OptionsError'
}

/** Parses the command line. Throws OptionsError. */
export function readOptions(args: readonly string[]): Options {
  const { quick, only, rounds, requests, out, against, document } = parse(args)
  return {
    quick: quick ?? false,
    document: document ?? false,
    only: only?.split(',') ?? [],
    ...(rounds !== undefined && { rounds: count('rounds', rounds) }),
    ...(requests !== undefined && { requests: count('requests', requests) }),
    ...(out !== undefined && { out }),
    ...(against !== undefined && { against }),
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean' },
        document: { type: 'boolean' },
        only: { type: 'string' },
        rounds: { type: 'string' },
        requests: { type: 'string' },
        out: { type: 'string' },
        against: { type: 'string' },
      },
    }).values
  } catch (error) {
    throw new OptionsError(error instanceof Error ? error.message : String(error))
  }
}

function count(name: string, text: string): number {
  const given = Number(text)
  if (!Number.isInteger(given) || given < 1)
    throw new OptionsError(`--${name} must be a whole number of at least 1`)
  return given
}
