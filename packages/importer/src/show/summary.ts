// The end of an import: its summary for people and for programs.
import { PROBLEMS } from '@sluice/contract'
import { counted, describeSeconds, formatNumber } from '@sluice/terminal'
import type { InputCount, Tally, UnreadFile } from '../account/ledger.ts'
import type { ConversationCounts } from '../gather/conversation-counts.ts'
import { EXIT_CODES } from './exit-codes.ts'

export type State = keyof typeof EXIT_CODES

export interface Summary {
  state: State
  isDryRun: boolean
  tally: Tally
  inputs: readonly InputCount[]
  unread: readonly UnreadFile[]
  conversations?: ConversationCounts | undefined
  seconds: number
  bytes: number
  problem?: string | undefined
  /** The options that the command lacks. */
  lacking?: readonly string[] | undefined
  /** Only in a dry run: the whole command with these options. */
  corrected?: string | undefined
  rejectedFile?: string | undefined
  /** How many threads of the tally were stored or rejected by earlier runs of this import. */
  threadsBefore?: number | undefined
  /** The checkpoint from which the same command continues. */
  checkpoint?: string | undefined
  dashboard?: string | undefined
}

/** Makes the summary as a JSON object. */
export function summaryObject({
  tally,
  isDryRun,
  conversations,
  lacking: _,
  ...summary
}: Summary): object {
  const { threads, quotes, checked, notes, reasons } = tally
  return {
    kind: 'summary',
    ...summary,
    exitCode: EXIT_CODES[summary.state],
    ...(isDryRun
      ? { dryRun: true, valid: checked, rejected: threads.rejected }
      : { threads, quotes }),
    ...(conversations && {
      conversations: conversations.conversations.map((one) => ({
        ...one,
        speakers: [...one.speakers],
      })),
      otherThreads: conversations.otherThreads,
    }),
    rejectedReasons: reasons,
    ...notes,
  }
}

/** Makes the summary for people. It contains the word "done" only if everything is stored. */
export function summaryLines(summary: Summary): string[] {
  const { tally, problem, rejectedFile, threadsBefore, checkpoint, dashboard } = summary
  const lines = [
    problem !== undefined && `${headline(summary)} ${problem}`,
    summary.corrected !== undefined && `Try: ${summary.corrected}`,
    ...countLines(summary),
    ...inputLines(summary),
    ...conversationLines(summary),
    // The counts include earlier runs, but the time does not.
    threadsBefore !== undefined &&
      `Went on from a checkpoint: earlier runs stored or rejected ${formatNumber(threadsBefore)} of these threads.`,
    rejectedFile !== undefined && `Rejected records: ${rejectedFile}${remedyOf(tally)}`,
    ...warningLines(tally.notes.warning),
    ...noteLines('rejected', reasonsOf(tally, false)),
    ...noteLines('not stored', reasonsOf(tally, true)),
    ...(['doubtful', 'skipped', 'cut', 'replaced'] as const).flatMap((kind) =>
      noteLines(kind, tally.notes[kind]),
    ),
    checkpoint !== undefined &&
      `Run the ${commandAfter(summary)} to go on from here (${checkpoint}).`,
    dashboard !== undefined &&
      `Dashboard: ${dashboard}/${summary.state === 'completed' ? 'jobs' : 'failures'}`,
  ]
  return lines.filter((line) => line !== false)
}

/**
 * After `gave_up`, the same command would give up again, because the checkpoint also counts
 * rejected records.
 */
function commandAfter({ state }: Summary): string {
  return state === 'gave_up' ? 'command again with a higher --max-errors' : 'same command again'
}

/** Returns the reasons of records whose jobs failed, or of all other records. */
function reasonsOf({ reasons }: Tally, failed: boolean): Record<string, number> {
  const isFailed = (reason: string) => reason.startsWith(PROBLEMS.job_failed.meaning)
  return Object.fromEntries(
    Object.entries(reasons).filter(([reason]) => isFailed(reason) === failed),
  )
}

/** A record whose job failed needs no repair, because operators run the job again. */
function remedyOf(tally: Tally): string {
  if (Object.keys(reasonsOf(tally, false)).length === 0) return ''
  const others =
    Object.keys(reasonsOf(tally, true)).length > 0
      ? '; those that were not stored need no post'
      : ''
  return ` (fix them there, and import that file${others})`
}

const HEADLINES: Readonly<Record<State, string>> = {
  completed: 'Done:',
  completed_with_rejected: 'Completed, but some records were rejected:',
  completed_with_unread: 'Completed, but some files were not read:',
  completed_without_threads: 'Completed, but no record became a thread:',
  gave_up: 'Gave up:',
  interrupted: 'Interrupted:',
  failed: 'Failed:',
  crashed: 'Crashed:',
}

const DRY_HEADLINES: Readonly<Partial<Record<State, string>>> = {
  completed: 'Dry run, nothing was sent:',
  completed_with_rejected: 'Dry run, nothing was sent; some records were rejected:',
  completed_with_unread: 'Dry run, nothing was sent; some files were not read:',
}

function headline({ state, isDryRun }: Summary): string {
  return (isDryRun && DRY_HEADLINES[state]) || HEADLINES[state]
}

/** If an import failed before it stored or rejected anything, there is nothing to count. */
function countLines(summary: Summary): string[] {
  const counts = `${countsOf(summary)} in ${describeSeconds(summary.seconds)}.`
  if (summary.problem === undefined) return [`${headline(summary)} ${counts}`]
  return summary.tally.events === 0 ? [] : [counts]
}

function countsOf({ isDryRun, tally: { threads, quotes, checked } }: Summary): string {
  if (isDryRun) {
    return `${counted(checked.threads, 'valid thread')} with ${counted(checked.quotes, 'quote')}, ${formatNumber(threads.rejected)} rejected`
  }
  const { created, updated, unchanged, rejected } = threads
  const ofThreads = `${counted(created, 'thread')} created, ${formatNumber(updated)} updated, ${formatNumber(unchanged)} unchanged, ${formatNumber(rejected)} rejected`
  const ofQuotes = `${counted(quotes.created, 'quote')} created, ${formatNumber(quotes.updated)} updated, ${formatNumber(quotes.unchanged)} unchanged`
  return `${ofThreads}; ${ofQuotes},`
}

/** At most this number of inputs, and of unread files, is named. */
const NAMED_INPUTS = 50

/** Makes none if the input was not read completely, because the counts would be wrong. */
function inputLines({ inputs, unread, problem }: Summary): string[] {
  const read = inputs.map(
    ({ name, format, records, threads }) =>
      `${name}: ${format}, ${counted(records, 'record')}, ${counted(threads, 'thread')}`,
  )
  // The advice names all formats, so it is repeated for a further file only if it differs.
  const notRead = unread.map(({ name, advice }, index) =>
    advice === unread[index - 1]?.advice
      ? `${name}: not read, for the same reason`
      : `${name}: not read, because no format recognises it. ${advice}`,
  )
  return [problem === undefined ? read : [], notRead].flatMap((lines) => {
    const more =
      lines.length > NAMED_INPUTS ? [`and ${formatNumber(lines.length - NAMED_INPUTS)} more`] : []
    return [...lines.slice(0, NAMED_INPUTS), ...more].map((line) => `  ${line}`)
  })
}

/** At most this number of speakers of a conversation is named. */
const NAMED_SPEAKERS = 5

/** Makes a line for each conversation, but none if the input was not read completely. */
function conversationLines({ conversations: counts, problem }: Summary): string[] {
  if (counts === undefined || problem !== undefined) return []
  const lines = counts.conversations.map(({ name, messages, speakers, first, last }) => {
    const dates = [
      ...new Set([first, last].map((date) => date?.slice(0, 'YYYY-MM-DD'.length))),
    ].join(' to ')
    const more =
      speakers.size > NAMED_SPEAKERS ? [`${formatNumber(speakers.size - NAMED_SPEAKERS)} more`] : []
    const names = [...[...speakers].slice(0, NAMED_SPEAKERS), ...more].join(', ')
    return `  ${name}: ${counted(messages, 'message')}, ${dates || 'without dates'}, ${counted(speakers.size, 'speaker')}${names && `: ${names}`}`
  })
  const others =
    counts.otherThreads > 0 ? [`  and ${counted(counts.otherThreads, 'more thread')}`] : []
  return lines.length === 0 ? [] : ['Conversations:', ...lines, ...others]
}

/** Makes the lines for warnings. A warning counts once for each file. */
function warningLines(reasons: Record<string, number>): string[] {
  return Object.entries(reasons).map(
    ([reason, files]) =>
      `  warning: ${reason}${files === 1 ? '' : ` (in ${formatNumber(files)} files)`}`,
  )
}

function noteLines(kind: string, reasons: Record<string, number>): string[] {
  const byNumber = Object.entries(reasons).sort(([, a], [, b]) => b - a)
  return byNumber.map(([reason, number]) => `  ${kind} (${formatNumber(number)}): ${reason}`)
}
