import type { CollectionName, Runtime, StoreCommands } from '@sluice/store'
import { MongoNetworkError, ObjectId } from 'mongodb'
import { createMemoryDatabase, type MemoryDatabase } from './memory-database.ts'

// Simulates processes that use the store: a list of numbers decides which command takes effect next, what fails, and how time passes.

/** What goes wrong with one write command of a process. */
export interface Fault {
  /** The n-th write command of the process, from 1. */
  atWrite: number
  /** The process dies, or gets an error of the network; `late`: it gets the error before the command takes effect, at any later time. */
  kind: 'death' | 'error' | 'late'
  /** Which of the command's documents are written before: bit n stands for the n-th. */
  share: number
}

/** A write command that waits for so many steps of others before it takes effect, or whose reply waits for them. Nothing fails. */
export interface SlowWrite {
  /** The n-th write command of the process, from 1. */
  atWrite: number
  what: 'command' | 'reply'
  steps: number
}

interface Step {
  owner: Process
  sentAt: number
  /** Takes effect, wholly or for some of its documents, and gives what the caller gets. */
  run(share?: number): Promise<() => void>
  fail(error: Error): void
  isWrite: boolean
  /** The number of the step before which a slow write does not take effect, unless nothing else is left to happen or its time is up. */
  heldUntil?: number
  /** So many steps of others come before its reply. */
  replyAfter?: number
  describe(): string
}

interface Pause {
  owner: Process
  until: number
  resolve(): void
}

/** A process that uses the store. Its commands and pauses wait for the simulation. */
export interface Process {
  name: string
  commands: StoreCommands
  runtime: Runtime
  isDead: boolean
  /** Resolves when the process dies. */
  death: Promise<void>
  die(): void
  writes: number
  faults: readonly Fault[]
  slowWrites: readonly SlowWrite[]
  /** It inserts quotes without positions, as the store did before positions were. */
  isOld: boolean
}

/** Pauses last longer than requested, so that waiting for a dead process takes few steps. */
const STRETCH = 20

/** The clock at the beginning, in ms since 1970. */
const START = 1_700_000_000_000

/** A command takes effect at most this time after it was sent, in ms: the bound that the store relies on. */
const LATEST_MS = 30_000

export class Simulation {
  readonly database: MemoryDatabase = createMemoryDatabase()
  readonly #choices: readonly number[]
  readonly #onWrite: () => void
  readonly #trace: ((line: string) => void) | undefined
  #chosen = 0
  #taken = 0
  #processes = 0
  #randomness = 1
  #clock = START
  #ids = 0
  #steps: Step[] = []
  #late: Step[] = []
  #pauses: Pause[] = []

  /** @param trace gets a line for each command that takes effect. */
  constructor(choices: readonly number[], onWrite: (simulation: Simulation) => void, trace?: (line: string) => void) {
    this.#choices = choices
    this.#trace = trace
    this.#onWrite = () => onWrite(this)
  }

  /** Starts a process whose clock is off by `skew` ms. */
  startProcess(
    skew: number,
    { faults = [], slowWrites = [], isOld = false }: Partial<Pick<Process, 'faults' | 'slowWrites' | 'isOld'>> = {},
  ): Process {
    const runtime: Runtime = {
      now: () => this.#clock + skew,
      monotonic: () => this.#clock,
      delay: (ms) => this.#pause(owner, ms * STRETCH),
      random: () => this.#random(),
      newId: () => new ObjectId(String(++this.#ids).padStart(24, '0')),
    }
    const { promise: death, resolve: die } = Promise.withResolvers<void>()
    const commands = this.#commandsOf(() => owner)
    const owner: Process = {
      name: `p${++this.#processes}`,
      commands,
      runtime,
      isDead: false,
      death,
      die,
      writes: 0,
      faults,
      slowWrites,
      isOld,
    }
    return owner
  }

  /** Runs steps until this promise settles, and settles as it does. */
  async runUntil<Result>(done: Promise<Result>): Promise<Result> {
    let isDone = false
    done.finally(() => (isDone = true)).catch(() => {})
    for (;;) {
      await settled()
      if (isDone) return done
      if (!(await this.#advance())) throw new Error('every process waits, and nothing is left to happen')
    }
  }

  /** Runs the steps that are left: pauses, and commands without a waiting caller. */
  async runOut(): Promise<void> {
    for (;;) {
      await settled()
      if (!(await this.#advance())) return
    }
  }

  /** Lets time pass. Commands that were sent too long before take effect first. */
  async pass(ms: number): Promise<void> {
    const isOverdue = ({ sentAt }: Step) => this.#clock + ms - sentAt > LATEST_MS
    for (;;) {
      const overdue = [...this.#steps, ...this.#late].find(isOverdue)
      if (overdue === undefined) break
      await this.#land(overdue)
      await settled()
    }
    this.#clock += ms
  }

  /** A process does nothing for so many ms. */
  sleep(owner: Process, ms: number): Promise<void> {
    return this.#pause(owner, ms)
  }

  #pause(owner: Process, ms: number): Promise<void> {
    return new Promise((resolve) => this.#pauses.push({ owner, until: this.#clock + ms, resolve }))
  }

  /** A linear congruential generator (Numerical Recipes). */
  #random(): number {
    this.#randomness = (this.#randomness * 1_664_525 + 1_013_904_223) % 2 ** 32
    return this.#randomness / 2 ** 32
  }

  #choose(among: number): number {
    return (this.#choices[this.#chosen++] ?? 0) % Math.max(1, among)
  }

  /** Runs one step. Returns false if none is left. */
  async #advance(): Promise<boolean> {
    const pauses = this.#pauses.filter(({ owner }) => !owner.isDead).sort((one, other) => one.until - other.until)
    const ready = this.#steps.filter(({ heldUntil = 0 }) => heldUntil <= this.#taken)
    const options = [...ready, ...pauses.slice(0, 2), ...this.#late]
    const option = options[this.#choose(options.length)] ?? this.#steps[0]
    if (option === undefined) return false
    this.#taken += 1
    if ('until' in option) await this.#endPause(option)
    else if (this.#late.includes(option)) await this.#land(option)
    else await this.#take(option)
    return true
  }

  async #endPause(pause: Pause): Promise<void> {
    this.#pauses = this.#pauses.filter((other) => other !== pause)
    if (pause.until > this.#clock) await this.pass(pause.until - this.#clock)
    pause.resolve()
  }

  async #take(step: Step): Promise<void> {
    const { owner } = step
    if (this.#isHeld(step)) return
    const fault = step.isWrite ? owner.faults.find(({ atWrite }) => atWrite === owner.writes) : undefined
    if (fault === undefined) return this.#land(step)
    if (fault.kind === 'late') {
      this.#steps = this.#steps.filter((other) => other !== step)
      this.#late.push(step)
    } else {
      await this.#land(step, fault.share)
    }
    this.#trace?.(`${owner.name}: ${fault.kind}`)
    if (fault.kind !== 'death') return step.fail(new MongoNetworkError('the connection broke'))
    owner.isDead = true
    owner.die()
    // The commands that it has sent may still arrive.
    this.#late.push(...this.#steps.filter((other) => other.owner === owner))
    this.#steps = this.#steps.filter((other) => other.owner !== owner)
    this.#pauses = this.#pauses.filter((other) => other.owner !== owner)
  }

  /** Counts a write, and lets a slow one wait. */
  #isHeld(step: Step): boolean {
    const { owner } = step
    if (!step.isWrite || step.heldUntil !== undefined) return false
    owner.writes += 1
    const slow = owner.slowWrites.find(({ atWrite }) => atWrite === owner.writes)
    step.heldUntil = this.#taken
    if (slow?.what === 'reply') step.replyAfter = slow.steps
    if (slow?.what !== 'command') return false
    step.heldUntil += slow.steps
    return true
  }

  async #land(step: Step, share?: number): Promise<void> {
    const isAwaited = this.#steps.includes(step)
    this.#steps = this.#steps.filter((other) => other !== step)
    this.#late = this.#late.filter((other) => other !== step)
    const part = share === undefined ? '' : ` (only part ${share.toString(2)})`
    this.#trace?.(
      `${(this.#clock - START) / 1000} s ${step.owner.name}: ${step.describe()}${part}${isAwaited ? '' : ', late'}`,
    )
    const reply = await step.run(share)
    if (step.isWrite) this.#onWrite()
    if (!isAwaited || share !== undefined || step.owner.isDead) return
    if (step.replyAfter === undefined) reply()
    else this.#steps.push(replyTo(step, this.#taken + step.replyAfter, reply))
  }

  #commandsOf(owner: () => Process): StoreCommands {
    const { commands } = this.database
    const send = <Result>(
      isWrite: boolean,
      what: unknown[],
      run: (share?: number) => Promise<Result>,
    ): Promise<Result> => {
      // A dead process never continues.
      if (owner().isDead) return new Promise(() => {})
      return new Promise((resolve, reject) => {
        const step: Step = {
          owner: owner(),
          sentAt: this.#clock,
          isWrite,
          describe: () => what.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' '),
          fail: reject,
          async run(share) {
            const result = await run(share)
            return () => resolve(result)
          },
        }
        this.#steps.push(step)
      })
    }
    const part = <Item>(items: readonly Item[], share?: number) =>
      share === undefined ? items : items.filter((_, at) => ((share >> (at % 8)) & 1) === 1)
    return {
      find: <Name extends CollectionName>(name: Name, ids: readonly string[]) =>
        send(false, ['find', name, ids], () => commands.find(name, ids)),
      findWithoutTexts: (ids) =>
        send(false, ['find', 'quotes', 'without texts', ids], () => commands.findWithoutTexts(ids)),
      findVersions: (name, ids) => send(false, ['versions', name, ids], () => commands.findVersions(name, ids)),
      sumQuotes: (ids) => send(false, ['sum', ids], () => commands.sumQuotes(ids)),
      countWithoutPosition: (ids) => send(false, ['count', ids], () => commands.countWithoutPosition(ids)),
      scanQuotes: (id) => commands.scanQuotes(id),
      scanSources: () => commands.scanSources(),
      insert: (name, given) => {
        const documents = owner().isOld ? given.map(({ position: _, ...others }) => others) : given
        return send(true, ['insert', name, documents], (share) => commands.insert(name, part(documents, share)))
      },
      update: (name, statements) =>
        send(true, ['update', name, statements], (share) => commands.update(name, part(statements, share))),
      createIndexes: async () => {},
    }
  }
}

/** The reply to a command that has taken effect, as a step of its own. */
function replyTo({ owner, sentAt, fail, describe }: Step, heldUntil: number, reply: () => void): Step {
  return {
    owner,
    sentAt,
    isWrite: false,
    heldUntil,
    fail,
    describe: () => `reply to ${describe()}`,
    run: async () => reply,
  }
}

/** Resolves when every process waits for the simulation again. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
