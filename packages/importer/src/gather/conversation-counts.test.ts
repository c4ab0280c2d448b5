import { DEFAULT_LIMITS } from '@sluice/contract'
import { expect, test } from 'vitest'
import { createShaper } from '../shape/shape-thread.ts'
import { createConversationCounts } from './conversation-counts.ts'
import type { ThreadInput } from './gather-threads.ts'

function thread(
  externalId: string,
  fields: ThreadInput['fields'],
  ...quotes: ThreadInput['quotes'][number][]
): ThreadInput {
  return { kind: 'piece', service: 'custom', externalId, fields, quotes, place: { path: 'a' } }
}
const message = (speaker: string, createdAt?: string) => ({
  text: 'Hi',
  speaker,
  ...(createdAt && { createdAt }),
})

test('a chat of many days, and a channel, is one conversation with the messages that are stored; other threads are conversations of their own', () => {
  const { add, counts } = createConversationCounts(4)
  const shape = createShaper({ limits: DEFAULT_LIMITS, idPrefix: '' })
  const threads = [
    thread(
      '7/2024-05-01',
      { title: 'Bo, 2024-05-01', channelName: 'Bo' },
      message('Bo', '2024-05-01T09:30:00.000Z'),
    ),
    thread(
      '7/2567-05-02',
      { channelName: 'Bo' },
      message('+49 1', '2567-05-02T09:30:00.000Z'),
      message('Bo'),
    ),
    thread(
      '8/2024-05-01',
      { channelName: 'Bo' },
      { text: '', speaker: 'Di' },
      { ...message('Cy'), externalId: 'm1' },
      { ...message('Cy'), externalId: 'm1', text: 'Hi!' },
    ),
    thread('C1/1', { channelName: 'general' }, message('Ada')),
    thread('C1/2', { channelName: 'general' }, message('Ada')),
    thread('A-1', { title: 'It leaks' }, message('Ada')),
    thread('A-2', { title: 'It burns' }, message('Ada')),
    thread('A-3', { title: 'Empty' }),
    thread('A-4', { title: 'Blank' }, { text: ' ', speaker: 'Ada' }),
  ]
  for (const each of threads) add(each, shape(each, () => {}).requests)
  expect(counts).toEqual({
    conversations: [
      {
        name: 'Bo',
        messages: 3,
        speakers: new Set(['Bo', '+49 1']),
        first: '2024-05-01T09:30:00.000Z',
        last: '2567-05-02T09:30:00.000Z',
      },
      { name: 'Bo', messages: 1, speakers: new Set(['Cy']) },
      { name: 'general', messages: 2, speakers: new Set(['Ada']) },
      { name: 'It leaks', messages: 1, speakers: new Set(['Ada']) },
    ],
    otherThreads: 1,
  })
})
