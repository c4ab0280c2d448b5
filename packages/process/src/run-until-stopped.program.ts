import { once } from 'node:events'
import { createLogger } from './create-logger.ts'
import { type Life, runUntilStopped } from './run-until-stopped.ts'

// A program for tests of a process's life. Its argument selects how it behaves.
const log = createLogger('program', 'info')
const keepAlive = setInterval(() => {}, 60_000)

function acquire({ release }: Life): void {
  release('first', () => {
    clearInterval(keepAlive)
    log.info('released.first')
  })
  release('second', async () => {
    await new Promise(setImmediate)
    log.info('released.second')
  })
}

const starts: Record<string, (life: Life) => Promise<void>> = {
  orderly: async (life) => acquire(life),
  'slow start': async (life) => {
    process.send?.('starting')
    await once(life.stopping, 'abort')
    acquire(life)
  },
  'kept time': async (life) => {
    acquire(life)
    life.release('third', () =>
      log.info(`${life.graceLeftMs(1_000) > 0}, ${life.graceLeftMs(20_000)}`),
    )
  },
  'abandoned start': async (life) => {
    acquire(life)
    process.send?.('starting')
    await once(life.stopping, 'abort')
    throw new Error('no use any more')
  },
  'failing start': async (life) => {
    acquire(life)
    throw new Error('nothing to start with')
  },
  'failing release': async (life) => {
    acquire(life)
    life.release('third', () => Promise.reject(new Error('stuck')))
  },
  'hanging release': async (life) => {
    acquire(life)
    life.release('third', () => new Promise(() => log.info('hanging')))
  },
  'uncaught error': async (life) => {
    acquire(life)
    setImmediate(() => {
      throw new Error('nobody caught me')
    })
  },
  'unhandled rejection': async (life) => {
    acquire(life)
    void Promise.reject(new Error('nobody caught me'))
  },
}

await runUntilStopped({
  start: (life) => (starts[process.argv[2] ?? ''] ?? starts.orderly ?? acquireNothing)(life),
  graceSeconds: Number(process.argv[3] ?? 20),
  log,
})

async function acquireNothing(): Promise<void> {}
