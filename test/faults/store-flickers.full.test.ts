import assert from 'node:assert/strict'
import { test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'

test('an idle worker that cannot reach MongoDB is named with the reason; one that loses it for moments is unstable, not unavailable', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const proxy = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const { readVerdict } = await openOperator(sluice)
  const verdict = async () => (await readVerdict()).join()
  await proxy.shut()
  await sluice.startWorker({ MONGODB_URL: proxy.url })
  const refused = `connect ECONNREFUSED ${new URL(proxy.url).host}`
  const outage = new RegExp(
    `^MongoDB has been unavailable for \\d+ s \\(${refused}\\); 0 jobs wait$`,
  )
  await until(String(outage), async () => outage.test(await verdict()))
  await proxy.reopen()
  await until('all is well', async () => (await verdict()) === '')

  const load = postSteadily(t, sluice, { callers: 8, restMs: 0 })
  const seen: string[] = []
  await until('the verdict says that it is unstable', async () => {
    await proxy.shut()
    await proxy.reopen()
    await load.moreStored(8)
    seen.push(await verdict())
    return seen.at(-1)?.includes('The connection to MongoDB is unstable: a worker lost it')
  })
  assert(
    !seen.some((text) => /MongoDB has been unavailable for [01] s/.test(text)),
    seen.join('\n'),
  )
  await load.stop()
  const isStable = async () => !(await verdict()).includes('unstable')
  await until('it is no longer unstable', isStable, 15_000 + BUSY_MS)
})
