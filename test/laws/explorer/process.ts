import {
  allRefused,
  type CollectionName,
  type ReadConcern,
  type Runtime,
  type StoreCommands,
  type WriteReply,
} from '@sluice/store'
import { type MemoryDatabase, type Run, singleUpdates } from './memory-database.ts'

// The processes of a simulation, what goes wrong with them, and the commands that they send.

/** What goes wrong with one write command of a process. */
export type Fault = Break | Disturbance | Conflict

interface AtWrite {
  /** The n-th write command of the process, from 1. */
  atWrite: number
}

/** The process dies, or gets an error of the network. */
export interface Break extends AtWrite {
  kind: 'death' | 'error'
  /** The documents that are written before: bit n stands for the n-th. */
  share: number
  /** The other documents are written at any later time, or never. */
  rest: 'late' | 'lost'
}

/**
 * The command or its reply waits for `steps` steps of others, or the command takes effect a second
 * time at any later time. Nothing fails.
 */
export interface Disturbance extends AtWrite {
  kind: 'slow command' | 'slow reply' | 'twice'
  steps: number
}

/**
 * The command meets another one at a document and fails as a whole, although some of its documents
 * were written.
 */
export interface Conflict extends AtWrite {
  kind: 'conflict'
  /** The documents that are written: bit n stands for the n-th. */
  share: number
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
}

/** A command that a process sends. */
export interface Command<Reply> {
  /** A guard refuses a guarded write that comes a second time. */
  kind: 'read' | 'guarded write' | 'unguarded write'
  /** @param share selects the documents to write: bit n stands for the n-th. All if absent. */
  run(share?: number): Run<Reply>
  /** The documents of `run`, in the order in which it writes them. */
  writes(share?: number): string[]
  /** The reply if the command fails as a whole because of another one. */
  conflict(): Reply
  describe(): string
}

type Send = <Reply>(command: Command<Reply>) => Promise<Reply>

/** Creates the commands of a process. `send` resolves with the reply to a command. */
export function commandsOf({ commands, runs }: MemoryDatabase, send: Send): StoreCommands {
  const read = <Reply>(run: () => Run<Reply>, ...words: unknown[]) =>
    send({
      kind: 'read',
      run,
      writes: () => [],
      conflict: unreachable,
      describe: () => textOf(words),
    })
  // Documents without ids need no command.
  const readByIds = <Found>(
    ids: readonly string[],
    run: () => Run<Found[]>,
    ...words: unknown[]
  ) => (ids.length === 0 ? Promise.resolve([]) : read(run, ...words, ids))
  const write = <Item>(
    name: CollectionName,
    act: 'insert' | 'update' | 'remove',
    items: readonly Item[],
    run: (some: readonly Item[]) => Run<WriteReply>,
    idsOf: (item: Item) => string[],
  ) =>
    send({
      kind: name === 'writers' ? 'unguarded write' : 'guarded write',
      run: (share) => run(shareOf(items, share)),
      writes: (share) =>
        shareOf(items, share).flatMap((item) => idsOf(item).map((id) => `${name} ${id}`)),
      conflict: () => allRefused(items),
      describe: () => textOf([act, name, items]),
    })
  return {
    ...commands,
    find: <Name extends CollectionName>(
      name: Name,
      ids: readonly string[],
      concern?: ReadConcern,
    ) => readByIds(ids, () => runs.find(name, ids, concern), 'find', name),
    findWithoutTexts: (ids, concern) =>
      readByIds(ids, () => runs.findWithoutTexts(ids, concern), 'find quotes without texts'),
    findVersions: (name, ids, withEpoch) =>
      readByIds(ids, () => runs.findVersions(name, ids, withEpoch), 'versions', name),
    findQuotesOf: (sourceId, page) =>
      read(() => runs.findQuotesOf(sourceId, page), 'find quotes of', [sourceId]),
    async sumQuotes(ids, { marked } = {}) {
      return (
        await Promise.all(ids.map((id) => read(() => runs.sumQuotes(id, marked), 'sum', [id])))
      ).flat()
    },
    removeQuotes: (_, ids, upTo) =>
      write(
        'quotes',
        'remove',
        ids,
        (some) => runs.removeQuotes(some, upTo),
        (id) => [id],
      ),
    insert: (name, documents) =>
      write(
        name,
        'insert',
        documents,
        (some) => runs.insert(name, some),
        ({ _id }) => [_id],
      ),
    update: (name, statements) =>
      write(
        name,
        'update',
        // A part of a joined update may take effect.
        statements.flatMap(singleUpdates),
        (some) => runs.update(name, some),
        ({ q }) => [q._id],
      ),
  }
}

function unreachable(): never {
  throw new Error('a read never conflicts')
}

function shareOf<Item>(items: readonly Item[], share?: number): readonly Item[] {
  return share === undefined ? items : items.filter((_, at) => ((share >> (at % 8)) & 1) === 1)
}

function textOf(words: readonly unknown[]): string {
  return words.map((word) => (typeof word === 'string' ? word : JSON.stringify(word))).join(' ')
}
