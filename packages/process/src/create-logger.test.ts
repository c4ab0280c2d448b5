import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { createLogger } from './create-logger.ts'

const KEY = `slc_${'a1B2'.repeat(9)}`

function logged(write: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = []
  write(createLogger('test', 'info', { write: (line) => void lines.push(line) }))
  return lines
}

test('a line is one JSON object with its level, ISO time and name', () => {
  const [line = ''] = logged((log) => log.info({ jobId: 'j1' }, 'job.enqueued'))
  const { time, ...rest } = JSON.parse(line)
  assert.equal(new Date(time).toISOString(), time)
  assert.equal(rest.level, 'info')
  assert.equal(rest.name, 'test')
  assert.equal(rest.jobId, 'j1')
  assert.equal(rest.msg, 'job.enqueued')
})

test('lines below the level are not written', () => {
  assert.deepEqual(
    logged((log) => log.debug('unseen')),
    [],
  )
})

test('keys and credentials never reach a line, in any field or text', () => {
  const lines = logged((log) => {
    log.info({ req: { headers: { 'x-api-key': 'anything "at" all' } } }, 'request.refused')
    log.info({ rawHeaders: ['X-API-Key', KEY] }, `refused ${KEY}`)
    log.info({ headers: { 'X-Api-Key': ['hunter1'] } })
    log.info(JSON.stringify({ 'x-api-key': 'hunter1' }))
    log.error({ err: new Error('connect redis://default:hunter2@10.0.0.1:6379/0 failed') })
    log.info({
      url: 'mongodb+srv://u:hunter2@cluster0.example.com,b/x',
      bad: 'redis://:hunter@2@host',
    })
  }).join('')
  assert.doesNotMatch(lines, /hunter|slc_|anything|at\\" all/)
  assert.match(lines, /redis:\/\/\[redacted\]@10\.0\.0\.1:6379\/0 failed/)
  for (const line of lines.trim().split('\n')) JSON.parse(line)
})

test('an error of Redis is logged without the arguments of its command, which have the texts of threads', () => {
  const command = { name: 'evalsha', args: ['a text of a thread'] }
  const err = Object.assign(new Error('WRONGTYPE'), { code: 7, command })
  const [line = ''] = logged((log) => log.error({ err }, 'queue.failed'))
  assert.doesNotMatch(line, /a text of a thread|evalsha/)
  const { message, stack, code } = JSON.parse(line).err
  assert.deepEqual([message, stack, code], ['WRONGTYPE', err.stack, 7])
})

test('the text of an error is logged as it is', () => {
  const [line = ''] = logged((log) => log.warn({ err: 'certificate has expired' }, 'redis.error'))
  assert.equal(JSON.parse(line).err, 'certificate has expired')
})

test('ordinary text that looks like neither is kept', () => {
  const [line = ''] = logged((log) =>
    log.info({ url: 'https://a.example/x?mail=me@b.example', at: 'a://b c@d' }),
  )
  assert.match(line, /mail=me@b\.example/)
  assert.match(line, /a:\/\/b c@d/)
})

test('the buffer is written at exit', async () => {
  const program = `
    import { createLogger } from ${JSON.stringify(fileURLToPath(new URL('create-logger.ts', import.meta.url)))}
    const log = createLogger('test', 'info')
    for (let n = 1; n <= 500; n++) log.info({ n }, 'line.written')
    process.exit(3)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  assert.equal(code, 3)
  assert.equal(output.trim().split('\n').length, 500)
})

test('a process whose log has lost its reader goes on, and exits when it is done', async () => {
  const url = new URL('./create-logger.ts', import.meta.url).href
  const program = `
    const { createLogger } = await import(${JSON.stringify(url)})
    const log = createLogger('unread', 'info')
    process.on('message', (message) => {
      if (message === 'exit') process.exit(7)
      for (let at = 0; at < 2_000; at++) log.info({ at }, 'nobody reads this')
      process.send('logged')
    })
    process.send('ready')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  await once(child, 'message')
  child.stdout?.destroy()
  child.send('log')
  await once(child, 'message')
  child.send('exit')
  assert.deepEqual(await once(child, 'exit'), [7, null])
})

test('a log on a full disk goes on when the disk has space again, and counts the lines that it lost', async () => {
  const url = new URL('./create-logger.ts', import.meta.url).href
  const program = `
    import fs from 'node:fs'
    const write = fs.write
    let refused = 0
    fs.write = (fd, bytes, done) => {
      if (refused === 3) return write(fd, bytes, done)
      refused += 1
      done(Object.assign(new Error('no space is left'), { code: 'ENOSPC' }))
    }
    const { createLogger } = await import(${JSON.stringify(url)})
    const log = createLogger('full', 'info')
    const text = 'x'.repeat(2 ** 20)
    for (let at = 0; at < 20; at++) log.info({ at, text }, 'written')
    process.on('message', () => process.exit())`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const found: Record<string, number> = { written: 0 }
  assert(child.stdout)
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, lines = 1 } = JSON.parse(line)
    found[msg] = (found[msg] ?? 0) + lines
    if (msg === 'log.dropped') child.send('exit')
  }
  assert.deepEqual(found, { written: 15, 'log.dropped': 5 })
})
