import { MongoNetworkError } from 'mongodb'
import type { Command, Fault, Process } from './process.ts'

// A command on its way: each of its steps reads or writes one document.

export interface Step {
  owner: Process
  kind: Command<unknown>['kind']
  sentAt: number
  /** When the command takes effect in a timed simulation. */
  due: number
  /**
   * The command waits until this number of steps was taken, unless nothing else is left to happen
   * or its time is up.
   */
  notBefore: number
  fault: Fault | undefined
  hasBegun: boolean
  /**
   * The documents that it has written so far. An engine that locks documents keeps them locked
   * until the command ends.
   */
  written(): readonly string[]
  /** The document that it writes next, if it writes. */
  nextWrite(): string | undefined
  /** Reads or writes one document. Returns how to reply if the document was the last one. */
  next(): (() => void) | undefined
  /** Tells the process that its connection broke. */
  fail(): void
  /** Tells the process that the command met another one. */
  conflict(): void
  /**
   * Creates a command that writes some of the documents, or all of them again. Nobody waits for its
   * reply.
   */
  again(share?: number): Step
  describe(): string
}

interface Sending<Reply> extends Pick<Step, 'sentAt' | 'due' | 'notBefore' | 'fault'> {
  share?: number | undefined
  resolve(reply: Reply): void
  fail(error: Error): void
}

export function stepOf<Reply>(
  owner: Process,
  command: Command<Reply>,
  sending: Sending<Reply>,
): Step {
  const { share, resolve, fail, ...rest } = sending
  const run = command.run(share)
  const writes = command.writes(share)
  let stepsTaken = 0
  return {
    owner,
    kind: command.kind,
    ...rest,
    hasBegun: false,
    written: () => writes.slice(0, stepsTaken),
    nextWrite: () => writes[stepsTaken],
    next() {
      this.hasBegun = true
      stepsTaken += 1
      const { done, value } = run.next()
      return done === true ? () => resolve(value) : undefined
    },
    conflict: () => resolve(command.conflict()),
    fail: () => fail(new MongoNetworkError('the connection broke')),
    again: (some) =>
      stepOf(owner, command, {
        ...sending,
        fault: undefined,
        share: some,
        resolve() {},
        fail() {},
      }),
    describe() {
      return `${this.hasBegun ? 'next of ' : ''}${command.describe()}${share === undefined ? '' : `, share ${(share & 255).toString(2)}`}`
    },
  }
}

/** Creates the reply to a command that has taken effect, as a step of its own. */
export function replyTo(step: Step, notBefore: number, reply: () => void): Step {
  const describe = () => `reply to ${step.describe()}`
  return {
    ...step,
    written: () => [],
    nextWrite: () => undefined,
    kind: 'read',
    fault: undefined,
    notBefore,
    next: () => reply,
    describe,
  }
}
