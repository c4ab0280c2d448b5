import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { type StoreRequest, storeBatch } from '@sluice/store'
import { openStore } from './support/open-store.ts'

let places = 0

function request(externalId: string, texts: string[]): StoreRequest {
  places += 1
  const quotes = texts.map((text, at) => ({ externalId: `q${at}`, text }))
  const source = { service: 'slack' as const, externalId, title: externalId }
  return { id: `r${places}`, tenant: 'acme', stamp: places, redelivered: false, thread: { source, quotes } }
}

describe('what a batch costs MongoDB', () => {
  const { client, store } = openStore('cost', { monitorCommands: true })
  let commands: string[] = []

  before(() => {
    client.on('commandStarted', ({ commandName, command }) => {
      commands.push(`${commandName} ${command[commandName]}`)
    })
  })

  beforeEach(() => {
    commands = []
  })

  it('new threads cost one read, two inserts and one update together', async () => {
    const batch = Array.from({ length: 20 }, (_, at) => request(`new-${at}`, ['one', 'two', 'three']))
    await storeBatch(store, batch)
    assert.deepEqual(commands, ['find sources', 'insert sources', 'insert quotes', 'update sources'])
  })

  it('a repost that covers the whole stored thread and changes nothing costs one write, to its source', async () => {
    const texts = Array.from({ length: 30 }, (_, at) => `text ${at}`)
    await storeBatch(store, [request('whole', texts)])
    commands = []
    const again = request('whole', texts)
    const answer = (await storeBatch(store, [again])).get(again.id)
    assert.equal(answer?.source.outcome, 'unchanged')
    assert.deepEqual(commands, ['find sources', 'find quotes', 'update sources'])
  })

  it('one whose digest is that of the last request costs the same write, and reads no quotes', async () => {
    const once = { ...request('digested', ['one', 'two']), digest: 'what it says' }
    await storeBatch(store, [once])
    commands = []
    const again = { ...request('digested', ['one', 'two']), digest: 'what it says' }
    const answer = (await storeBatch(store, [again])).get(again.id)
    assert.equal(answer?.source.outcome, 'unchanged')
    assert.deepEqual(
      answer?.quotes.map(({ text, outcome }) => [text, outcome]),
      [
        ['one', 'unchanged'],
        ['two', 'unchanged'],
      ],
    )
    assert.deepEqual(commands, ['find sources', 'update sources'])
    const append = request('digested', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    await storeBatch(store, [append])
    commands = []
    await storeBatch(store, [{ ...request('digested', ['one', 'two']), digest: 'what it says' }])
    assert.equal(commands[1], 'find quotes', 'another request was stored since')
  })

  it('an append to a long thread reads and writes what it appends, and sums nothing', async () => {
    await storeBatch(store, [
      request(
        'long',
        Array.from({ length: 500 }, (_, at) => `text ${at}`),
      ),
    ])
    commands = []
    const append = request('long', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    const answer = (await storeBatch(store, [append])).get(append.id)
    assert.equal(answer?.source.wordCount, 1_002)
    assert.deepEqual(commands, ['find sources', 'find quotes', 'update sources', 'insert quotes', 'update sources'])
  })

  it('a redelivered request that was stored already writes nothing', async () => {
    const once = request('twice', ['one', 'two'])
    await storeBatch(store, [once])
    commands = []
    const answer = (await storeBatch(store, [{ ...once, redelivered: true }])).get(once.id)
    assert.equal(answer?.source.outcome, 'created')
    assert.deepEqual(commands, ['find sources', 'find quotes'])
  })
})
