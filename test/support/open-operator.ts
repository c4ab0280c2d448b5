import type { Status } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { type TestSluice, untilKeyIsKnown } from './start-sluice.ts'

/** Makes the key of an operator, and functions that read the overview with it. */
export async function openOperator({ db, url }: Pick<TestSluice, 'db' | 'url'>) {
  const { key } = await createKey(db, { role: 'operator', name: 'on call' })
  await untilKeyIsKnown(url, key)
  const overview = async (): Promise<Status> => {
    const answer = await fetch(`${url}/admin/overview`, { headers: { 'x-api-key': key } })
    return JSON.parse(await answer.text())
  }
  /** The findings in words. */
  const readVerdict = async (): Promise<string[]> =>
    ((await overview()).verdict ?? []).map(({ text }) => text)
  return { key, overview, readVerdict }
}
