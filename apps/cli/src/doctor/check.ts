// The results of checks of servers, and how they are printed: faults first, each with the command
// that fixes it. Also checks clocks.

/** `FAULT`: must be repaired. `note`: could not be checked, or may be what the operator wants. */
export interface ServerCheck {
  state: 'FAULT' | 'note' | 'ok'
  text: string
  /** A command, in one line, to paste into a shell. */
  fix?: string | undefined
}

export const note = (text: string, fix?: string): ServerCheck => ({ state: 'note', text, fix })
/**
 * Makes a check from a condition.
 * @param fix is shown if the check fails.
 */
export const check = (isRight: boolean, text: string, fix: string): ServerCheck =>
  isRight ? { state: 'ok', text } : { state: 'FAULT', text, fix }

/** Describes checks in lines: faults, then notes, then the rest. */
export function checkLines(title: string, checks: readonly ServerCheck[]): string[] {
  const ordered = (['FAULT', 'note', 'ok'] as const).flatMap((state) =>
    checks.filter((one) => one.state === state),
  )
  const linesOf = ({ state, text, fix }: ServerCheck) => [
    `  ${state.padEnd(5)}  ${text}`,
    ...(fix ? [`    fix: ${fix}`] : []),
  ]
  return [title, ...ordered.flatMap(linesOf)]
}

/**
 * Returns by how many ms a server's clock is ahead of this machine's clock (negative if it is
 * behind). Because the delay of the answer is not known, returns the smallest difference that is
 * possible.
 */
export async function readClock(read: () => Promise<number>): Promise<number> {
  const before = Date.now()
  const at = await read()
  return Math.max(at - Date.now(), 0) + Math.min(at - before, 0)
}

/** If clocks differ by more than this, it is a fault: NTP keeps them within milliseconds. */
const MOST_APART_MS = 1_000

/**
 * Compares each clock with the middle one. If only two are known, compares them with the one that
 * is behind.
 */
export function checkClocks(all: readonly [host: string, aheadMs: number][]): ServerCheck[] {
  const clocks = all.filter(([, aheadMs]) => Number.isFinite(aheadMs))
  const unread = all
    .filter((one) => !clocks.includes(one))
    .map(([host]) => note(`${host}: its clock can’t be read`))
  const middle =
    clocks.map(([, aheadMs]) => aheadMs).sort((one, other) => one - other)[
      clocks.length > 2 ? 1 : 0
    ] ?? 0
  const checks = clocks.map(([host, aheadMs]) => {
    const text = `${host}: ${((aheadMs - middle) / 1_000).toFixed(1)} s from the other clocks`
    return check(Math.abs(aheadMs - middle) < MOST_APART_MS, text, `chronyc makestep  # on ${host}`)
  })
  return [...checks, ...unread]
}
