// Tests of the Jira format, on the issues of a small bakery.
import { expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { jiraFormat } from './jira.ts'

const HEADER =
  'Summary,Issue key,Issue id,Issue Type,Project key,Project name,Reporter,Created,Updated,Labels,Labels,Description,Attachment,Comment,Comment,Comment'
const issue = (cells: Record<string, string>, ...comments: string[]) => {
  const row = { Summary: 'Cold oven', 'Issue key': 'OVEN-7', Created: '01/May/24 9:30 AM', ...cells }
  const names = HEADER.split(',')
  const all = names.map((name, at) =>
    name === 'Comment'
      ? (comments[at - names.indexOf('Comment')] ?? '')
      : Object.entries(row).find(([own]) => own === name)?.[1],
  )
  return `${HEADER}\n${all.map((cell = '') => `"${cell.replaceAll('"', '""')}"`).join()}\n`
}
const find = (csv: string, options = {}) => readAll(jiraFormat, [inputFile('jira.csv', csv)], options)

test('an issue is a source, and each of its comments is a quote', async () => {
  const details = { Reporter: 'Ada', 'Project key': 'OVEN', 'Project name': 'Ovens', Description: 'Since "six"' }
  const csv = issue(details, '02/May/24 1:05 PM;bo;Yes; at 9;30\nreally', '02/May/24 1:05 PM;bo;Really')
  expect(await recognises(jiraFormat, inputFile('a.csv', csv))).toBe(true)
  const { pieces } = await find(csv, { timezone: 'Europe/Berlin' })
  expect(pieces[0]).toMatchObject({
    service: 'custom',
    externalId: 'jira/OVEN-7',
    fields: { title: 'Cold oven', channelName: 'Ovens', channelId: 'OVEN', createdAt: '2024-05-01T07:30:00.000Z' },
  })
  const createdAt = '2024-05-02T11:05:00.000Z'
  expect(pieces[0]?.quotes).toEqual([
    { externalId: 'OVEN-7', text: 'Since "six"', speaker: 'Ada', createdAt: '2024-05-01T07:30:00.000Z' },
    { externalId: `OVEN-7/${createdAt}/bo`, text: 'Yes; at 9;30\nreally', speaker: 'bo', createdAt },
    { externalId: `OVEN-7/${createdAt}/bo/2`, text: 'Really', speaker: 'bo', createdAt },
  ])
})

test('the later export of an issue comes last, and has the same ids', async () => {
  const files = ['03/May/24 9:00 AM', '02/May/24 9:00 AM'].map((Updated) =>
    inputFile('a.csv', issue({ Updated }, `02/May/24 1:05 PM;bo;Of ${Updated}`)),
  )
  const found = await readAll(jiraFormat, files)
  const [first, last] = found.quotes('jira/OVEN-7')
  expect(first?.externalId).toBe(last?.externalId)
  expect(last?.text).toBe('Of 03/May/24 9:00 AM')
})

test('files stand in for a description, and what is no comment of Jira is a text', async () => {
  const { pieces } = await find(
    issue({ Attachment: '01/May/24 9:31 AM;ada;oven.jpg;https://a.example/1' }, 'Only words'),
  )
  expect(pieces[0]?.quotes.map(({ text, attachments }) => [text, attachments])).toEqual([
    ['', ['oven.jpg']],
    ['Only words', undefined],
  ])
})

test('a date with two readings rejects the issue, unless an option names the order', async () => {
  const csv = issue({ Created: '5/6/2024 16:14' }, '5/7/2024 16:14;bo;Yes')
  expect((await find(csv)).rejected[0]?.reason).toMatch(/^A date needs --date-format: 5\/6\/2024 16:14 is/)
  const { pieces } = await find(csv, { dateFormat: 'M/D/Y' })
  expect(pieces[0]?.quotes[0]?.createdAt).toBe('2024-05-07T16:14:00.000Z')
})
