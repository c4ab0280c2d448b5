import assert from 'node:assert/strict'
import type { Runtime } from '@sluice/store'
import { ObjectId } from 'mongodb'
import { createMemoryDatabase, type MemoryDatabase } from './memory-database.ts'
import { type Break, type Command, commandsOf, type Fault, type Process } from './process.ts'
import { replyTo, type Step, stepOf } from './step.ts'

// Simulates processes that use the store: a list of numbers decides whose command goes on next, and
// how time passes.

/** What happens to the database. Each number counts steps from the beginning. */
export interface Mishaps {
  /** The primary loses its majority after `at` steps, and another one takes over `steps` later. */
  loss?: { at: number; steps: number } | undefined
  /** All documents of `writers` are removed after this step. */
  removal?: number | undefined
}

export interface SimulationOptions extends Mishaps {
  choices: readonly number[]
  /** The most documents that one command writes. */
  writesPerCommand: number
  /**
   * Each command takes some milliseconds, and the earliest one is next. Else a choice says which is
   * next, and only pauses take time.
   */
  isTimed: boolean
  /** The engine locks each document that a command writes until the command ends. */
  locks: boolean
  /** Called after each write of a document. Writes that no majority will have are left out. */
  onWrite(): void
  /** Is called with a line for each step. */
  trace: ((line: string) => void) | undefined
}

interface Pause {
  owner: Process
  due: number
  resolve(): void
}

/** Pauses last longer than requested, so that waiting for a dead process takes few steps. */
const STRETCH = 20

/** The clock at the beginning, in ms since 1970. */
const START = 1_700_000_000_000

/**
 * A command takes effect at most this time after it was sent, in ms: the bound that the store
 * relies on.
 */
const LATEST_MS = 30_000

/** A primary without a majority steps down before this time. */
const MAX_ISOLATION_MS = 10_000

/** No history needs this number of steps: its processes wait for each other for ever. */
const MAX_STEPS = 20_000

/** In timed simulations a command takes up to this time. */
const COMMAND_MS = 4

export class Simulation {
  readonly database: MemoryDatabase
  readonly #options: SimulationOptions
  #mishaps: Mishaps
  #chosen = 0
  #taken = 0
  #processes = 0
  #randomness: number
  #clock = START
  #ids = 0
  /** Commands to whose reply their process listens. */
  #steps: Step[] = []
  /** Commands to whose reply nobody listens. */
  #late: Step[] = []
  /** Commands that took effect and that no majority will confirm. */
  #unconfirmed: Step[] = []
  #pauses: Pause[] = []
  #hasMajority = true
  /** A process may go on. */
  #hasWoken = false

  constructor(options: SimulationOptions) {
    this.#options = options
    this.database = createMemoryDatabase(options.writesPerCommand)
    this.#mishaps = options
    this.#randomness = options.choices.reduce((sum, choice) => (sum * 31 + choice) % 2 ** 32, 1)
  }

  /** Milliseconds since 1970, by a clock that is right. */
  get now(): number {
    return this.#clock
  }

  /** Starts a process whose clock is off by `skew` ms. */
  startProcess(skew: number, faults: readonly Fault[] = []): Process {
    const runtime: Runtime = {
      now: () => this.#clock + skew,
      monotonic: () => this.#clock,
      delay: (ms) => this.sleep(owner, this.#options.isTimed ? ms : ms * STRETCH),
      random: () => this.#random(),
      newId: () => new ObjectId(String(++this.#ids).padStart(24, '0')),
    }
    let writes = 0
    const send = <Reply>(command: Command<Reply>) => {
      const isWrite = command.kind !== 'read'
      if (isWrite) writes += 1
      return this.#send(
        owner,
        command,
        isWrite ? faults.find(({ atWrite }) => atWrite === writes) : undefined,
      )
    }
    const { promise: death, resolve: die } = Promise.withResolvers<void>()
    const commands = commandsOf(this.database, send)
    const owner: Process = {
      name: `p${++this.#processes}`,
      commands,
      runtime,
      isDead: false,
      death,
      die,
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
      if (!(await this.#advance()))
        throw new Error('every process waits, and nothing is left to happen')
    }
  }

  /** Runs the steps that are left: pauses, and commands to whose reply nobody listens. */
  async runOut(): Promise<void> {
    do await settled()
    while (await this.#advance())
  }

  /** From now on nothing more happens to the database. */
  endMishaps(): void {
    this.#losePrimary()
    this.#mishaps = {}
  }

  /** Lets time pass. Commands that were sent too long before take effect first. */
  async pass(ms: number): Promise<void> {
    if (ms > MAX_ISOLATION_MS) this.#losePrimary()
    const isOverdue = ({ sentAt }: Step) => this.#clock + ms - sentAt > LATEST_MS
    for (;;) {
      const overdue = [...this.#steps, ...this.#late].find(isOverdue)
      if (overdue === undefined) break
      this.#land(overdue)
      await settled()
    }
    this.#clock += ms
  }

  /** A process does nothing for this time. */
  sleep(owner: Process, ms: number): Promise<void> {
    return new Promise((resolve) => this.#pauses.push({ owner, due: this.#clock + ms, resolve }))
  }

  /** A linear congruential generator (Numerical Recipes). */
  #random(): number {
    this.#randomness = (this.#randomness * 1_664_525 + 1_013_904_223) % 2 ** 32
    return this.#randomness / 2 ** 32
  }

  #choose<Option>(options: readonly Option[]): Option | undefined {
    if (options.length < 2) return options[0]
    return options[(this.#options.choices[this.#chosen++] ?? 0) % options.length]
  }

  /** Runs steps until a process may go on. Returns false if no step is left. */
  async #advance(): Promise<boolean> {
    for (this.#hasWoken = false; !this.#hasWoken; ) {
      this.#taken += 1
      if (this.#taken > MAX_STEPS)
        throw new Error(`the processes are not done after ${MAX_STEPS} steps`)
      this.#happen()
      if (this.#hasWoken) break
      const option = this.#options.isTimed ? this.#earliest() : this.#choose(this.#ready())
      if (option !== undefined) await this.#take(option)
      else if (!this.#hasMajority) this.#losePrimary()
      else return false
    }
    return true
  }

  #happen(): void {
    const { loss, removal } = this.#mishaps
    if (this.#taken === removal) {
      this.#trace(() => 'the documents of writers are removed')
      this.database.removeWriters()
    }
    if (this.#taken === loss?.at) {
      this.#trace(() => 'the primary has no majority any more')
      this.#hasMajority = false
      this.database.confirm()
    }
    if (loss !== undefined && this.#taken >= loss.at + loss.steps) this.#losePrimary()
  }

  #ready(): (Step | Pause)[] {
    const isFree = (step: Step) => this.#blockerOf(step) === undefined
    const steps = this.#steps.filter((step) => step.notBefore <= this.#taken && isFree(step))
    const pauses = this.#pauses.toSorted((one, other) => one.due - other.due).slice(0, 2)
    const ready = [...steps, ...pauses, ...this.#late.filter(isFree)]
    return ready.length === 0 ? this.#steps.filter(isFree).slice(0, 1) : ready
  }

  /** Returns the command that has locked the document which this step writes next. */
  #blockerOf(step: Step): Step | undefined {
    const next = step.nextWrite()
    if (!this.#options.locks || next === undefined) return undefined
    return [...this.#steps, ...this.#late].find(
      (other) => other !== step && other.written().includes(next),
    )
  }

  /** The store's commands lock documents in one order, so that none ever waits for itself. */
  #assertNoDeadlock(step: Step): void {
    const waiting = [step]
    for (
      let blocker = this.#blockerOf(step);
      blocker !== undefined;
      blocker = this.#blockerOf(blocker)
    ) {
      assert(
        !waiting.includes(blocker),
        `deadlock: ${waiting.map((one) => one.describe()).join('; ')}`,
      )
      waiting.push(blocker)
    }
  }

  #earliest(): Step | Pause | undefined {
    let earliest: Step | Pause | undefined
    for (const list of [this.#steps, this.#pauses, this.#late])
      for (const one of list) if (earliest === undefined || one.due < earliest.due) earliest = one
    return earliest
  }

  async #take(option: Step | Pause): Promise<void> {
    const isPause = 'resolve' in option
    if (option.due > this.#clock) await this.pass(option.due - this.#clock)
    if (!isPause) return this.#stepOn(option)
    this.#pauses = this.#pauses.filter((other) => other !== option)
    option.resolve()
    this.#hasWoken = true
  }

  #send<Reply>(owner: Process, command: Command<Reply>, fault: Fault | undefined): Promise<Reply> {
    // A dead process never continues.
    if (owner.isDead) return new Promise(() => {})
    const due = this.#clock + (this.#options.isTimed ? this.#random() * COMMAND_MS : 0)
    const notBefore = fault?.kind === 'slow command' ? this.#taken + fault.steps : 0
    return new Promise((resolve, fail) => {
      this.#steps.push(
        stepOf(owner, command, { sentAt: this.#clock, due, notBefore, fault, resolve, fail }),
      )
    })
  }

  #stepOn(step: Step): void {
    if (step.fault?.kind === 'death' || step.fault?.kind === 'error') this.#break(step, step.fault)
    else if (step.fault?.kind === 'conflict') this.#conflict(step, step.fault.share)
    else if (this.#options.isTimed) this.#land(step)
    else this.#runNext(step)
  }

  /** Fails a command of which only a share was written. */
  #break(step: Step, { kind, share, rest }: Break): void {
    const { owner } = step
    this.#trace(() => `${owner.name}: ${kind}`)
    this.#remove(step)
    this.#land(step.again(share))
    if (rest === 'late') this.#late.push(step.again(~share))
    this.#hasWoken = true
    if (kind === 'error') {
      step.fail()
      return
    }
    owner.isDead = true
    owner.die()
    // The commands that it has sent may still arrive.
    const sent = this.#steps.filter((other) => other.owner === owner)
    this.#late.push(...sent.map((other) => ({ ...other, fault: undefined })))
    this.#steps = this.#steps.filter((other) => other.owner !== owner)
    this.#pauses = this.#pauses.filter((other) => other.owner !== owner)
  }

  /** Answers that a command met another one. Only a share of it was written. */
  #conflict(step: Step, share: number): void {
    this.#trace(() => `${step.owner.name}: conflict`)
    this.#remove(step)
    this.#land(step.again(share))
    // The reply waits for a majority: the command writes once more before it replies.
    if (!this.#hasMajority) {
      this.#unconfirmed.push(step)
      return
    }
    this.database.confirm()
    step.conflict()
    this.#hasWoken = true
  }

  /** Runs all steps of a command, after those of the commands that block it. */
  #land(step: Step): void {
    do {
      for (
        let blocker = this.#blockerOf(step);
        blocker !== undefined;
        blocker = this.#blockerOf(step)
      )
        this.#land(blocker)
    } while (!this.#runNext(step))
  }

  /** Reads or writes one document of a command. Returns whether it was the last one. */
  #runNext(step: Step): boolean {
    this.#trace(() => `${step.owner.name}: ${step.describe()}`)
    const reply = step.next()
    this.#assertNoDeadlock(step)
    if (step.kind !== 'read' && this.#hasMajority) this.#options.onWrite()
    if (reply === undefined) return false
    const isAwaited = this.#steps.includes(step)
    this.#remove(step)
    if (step.kind !== 'read' && isAwaited && this.#hasMajority) this.database.confirm()
    if (step.fault?.kind === 'twice' && step.kind === 'guarded write') this.#late.push(step.again())
    if (!isAwaited) return true
    if (step.kind !== 'read' && !this.#hasMajority) this.#unconfirmed.push(step)
    else if (step.fault?.kind === 'slow reply')
      this.#steps.push(replyTo(step, this.#taken + step.fault.steps, reply))
    else {
      reply()
      this.#hasWoken = true
    }
    return true
  }

  #remove(step: Step): void {
    this.#steps = this.#steps.filter((other) => other !== step)
    this.#late = this.#late.filter((other) => other !== step)
  }

  /** The commands that have begun fail. The others reach the new primary. */
  #losePrimary(): void {
    if (this.#hasMajority) return
    this.#trace(() => 'the primary is lost')
    this.#hasMajority = true
    this.database.losePrimary()
    const failed = [...this.#unconfirmed, ...this.#steps.filter(({ hasBegun }) => hasBegun)]
    for (const step of failed) step.fail()
    this.#unconfirmed = []
    this.#steps = this.#steps.filter(({ hasBegun }) => !hasBegun)
    this.#late = this.#late.filter(({ hasBegun }) => !hasBegun)
    this.#hasWoken = true
  }

  /** Most runs are not traced, and the lines of a command would take a tenth of their time. */
  #trace(lineOf: () => string): void {
    this.#options.trace?.(`${(this.#clock - START) / 1000} s ${lineOf()}`)
  }
}

/** Resolves when every process waits for the simulation again. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
