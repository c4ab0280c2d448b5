import type { ParseThread, Preferences, Thread } from '@sluice/contract'
import { checkThread } from '../check-thread.ts'
import { parseJson } from '../parse-json.ts'
import { ProblemError } from '../problem-error.ts'
import type { BatchGroup } from './batch-group.ts'
import { createGrouping } from './batch-group.ts'
import { readItem } from './batch-item.ts'
import type { BodyLine, Lines } from './body-lines.ts'

/** Takes one group on; resolves when the next may come, which is what bounds memory. */
export type Submit = (group: BatchGroup) => Promise<void>

/** Takes a batch's items in, group by group. */
export type Run = (submit: Submit, isIdle: () => boolean) => Promise<void>

export interface BatchInput {
  requestId: string
  parseThread: ParseThread
  prefer: Preferences
  /** How long one line may be, in bytes. */
  lineBytes: number
  /** Nothing is under way, so that what has come so far need not wait for more. */
  isIdle: () => boolean
}

/**
 * Checks the lines of a batch as they come and submits them in groups, in their order.
 *
 * @throws what reading the lines throws, once what came before was submitted.
 */
export async function runLines(lines: AsyncIterable<Lines>, input: BatchInput, submit: Submit): Promise<void> {
  const grouping = createGrouping()
  const parse = (body: unknown): Thread => checkThread(input.parseThread, body, input.prefer)
  let index = 0
  const submitRest = async () => {
    const group = grouping.take()
    if (group !== undefined) await submit(group)
  }
  try {
    for await (const some of lines) {
      for (const line of some) {
        const item = readItem(index++, input.requestId, () => readLine(line, input.lineBytes), parse)
        if (grouping.add(item, line.length)) await submitRest()
      }
      if (input.isIdle()) await submitRest()
    }
  } finally {
    await submitRest()
  }
}

/** Checks the elements of an array and submits them in groups, in their order. */
export async function runArray(elements: readonly unknown[], input: BatchInput, submit: Submit): Promise<void> {
  const grouping = createGrouping()
  const parse = (body: unknown): Thread => checkThread(input.parseThread, body, input.prefer)
  for (const [index, element] of elements.entries()) {
    const item = readItem(index, input.requestId, () => element, parse)
    const group = grouping.add(item, 0) ? grouping.take() : undefined
    if (group !== undefined) await submit(group)
  }
  const rest = grouping.take()
  if (rest !== undefined) await submit(rest)
}

function readLine(line: BodyLine, bytes: number): unknown {
  if (line !== 'too long') return parseJson(line)
  throw new ProblemError('body_too_large', { detail: `A line may have at most ${bytes} bytes (bodyBytes).` })
}
