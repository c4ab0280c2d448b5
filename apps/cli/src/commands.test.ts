import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { queueKeys } from '@sluice/queue'
import { CommandFailedError, RefusedWriteError, StoreLayoutError } from '@sluice/store'
import { RedisUnavailableError } from '@sluice/terminal'
import { runMade } from '@sluice/terminal/test-support'
import type { Command } from 'commander'
import * as mongodb from 'mongodb'
import { test } from 'vitest'
import { printedOn } from './commands.test-support.ts'
import { type CliDeps, commandsOf } from './commands.ts'
import { SilentApiError } from './jobs/admin-client.ts'
import { readStatus } from './jobs/read-status.ts'

const ofProcess = createRequire(import.meta.resolve('@sluice/process/redis'))
const ofRedisClient = createRequire(ofProcess.resolve('ioredis'))
const classes: unknown[] = Object.values({
  ...mongodb,
  ...mongodb.BSON,
  ...ofRedisClient('redis-errors'),
  ...ofRedisClient('./errors/index.js'),
})

const FIELDS = { message: { value: 'it failed' }, errorLabelSet: { value: new Set() } }

/**
 * An error of each class of the store, MongoDB's driver, and Redis's client, and of each way to
 * lose a connection.
 */
const errors: Error[] = [
  new CommandFailedError(new Error('a command took longer than 10 s'), false),
  new StoreLayoutError(99),
  new RefusedWriteError({ code: 121, errmsg: 'Document failed validation' }, 'quotes', 'id'),
  // Made without their constructors, which take all kinds of arguments.
  ...classes.flatMap((one): Error[] =>
    Object(one).prototype instanceof Error ? [Object.create(Object(one).prototype, FIELDS)] : [],
  ),
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
  ].map((code) => Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' })),
  new DOMException('it failed', 'TimeoutError'),
  new DOMException('it failed', 'AbortError'),
]

/** A database or Redis of which each command fails with this error. */
function failing(error: Error): object {
  const get = (_: object, name: string | symbol) => {
    if (name === Symbol.toPrimitive) return () => 'somewhere'
    return name === 'then'
      ? (_: unknown, reject: (reason: Error) => void) => reject(error)
      : failing(error)
  }
  return new Proxy(() => {}, { get, apply: () => failing(error) })
}

/**
 * Where the error meets a command of `sluice`: when it connects, or at what it sends to both
 * servers or to MongoDB.
 */
const PLACES = ['connecting', 'commands', 'MongoDB'] as const

function depsFailing(error: Error, at: (typeof PLACES)[number], print: (line: string) => void) {
  const fail = () => Promise.reject(error)
  const openDb =
    at === 'connecting' ? fail : async () => ({ db: failing(error), close: async () => {} })
  const unavailable = () => Promise.reject(new RedisUnavailableError('Redis cannot be reached'))
  const sendToRedis = (work: (...args: unknown[]) => unknown) =>
    work(failing(error), queueKeys('some'))
  const withQueue = { connecting: fail, commands: sendToRedis, MongoDB: unavailable }[at]
  // As while no API answers.
  const client = { status: () => Promise.reject(new SilentApiError('No API answers.')) }
  const [folder, env, openClient] = [
    '/absent',
    {},
    async () => new Proxy(client, { get: (own, name) => Reflect.get(own, name) ?? ofApi(name) }),
  ]
  const ofApi = (name: string | symbol) => (name === 'then' ? undefined : fail)
  const readDirectly = () => readStatus(Object({ openDb, withQueue }))
  const ofScreen = { printLines: printedOn(print), print, show: print, say: print, fail: print }
  const others = {
    folder,
    env,
    process: { on() {}, off() {} },
    confirm: async () => true,
    createLink: fail,
  }
  return Object({ ...others, ...ofScreen, openDb, withQueue, openClient, readDirectly }) as CliDeps
}

function leavesOf(
  command: Command,
  path: readonly string[] = [],
): { path: readonly string[]; command: Command }[] {
  if (command.commands.length === 0) return [{ path, command }]
  return command.commands.flatMap((one) => leavesOf(one, [...path, one.name()]))
}

test('no error of the store, its driver or Redis ends a command in a stack', async () => {
  assert.ok(errors.length > 50, `${errors.length} errors`)
  const met = new Set<string>()
  for (const name of Object.keys(commandsOf(depsFailing(new Error(), 'connecting', () => {}))))
    for (const error of errors)
      for (const at of PLACES) {
        const lines: string[] = []
        const make = () =>
          commandsOf(depsFailing(error, at, (line) => void lines.push(line)))[name]?.()
        for (const { path } of leavesOf((await make()) ?? assert.fail())) {
          const command = (await make()) ?? assert.fail()
          const leaf = path.reduce(
            (one, part) => one.commands.find((each) => each.name() === part) ?? one,
            command,
          )
          const args = leaf.registeredArguments.map(
            (one) => one.argChoices?.[0] ?? (one.name() === 'time' ? '1d' : 'abcdef'),
          )
          const ran = await runMade(() => command.exitOverride(), [...path, ...args])
          const what = `sluice ${[name, ...path, ...args].join(' ')}: ${error.name} at ${at}`
          if (ran.code === 0) continue
          met.add(name)
          assert.match(ran.stderr, /^error: .+\n$/, what)
          if (name === 'doctor')
            assert.deepEqual([ran.code, lines.join().includes('undefined')], [2, false], what)
        }
      }
  for (const name of [
    'doctor',
    'find',
    'jobs',
    'keys',
    'login',
    'pause',
    'resume',
    'status',
    'tail',
  ])
    assert.ok(met.has(name), name)
})
