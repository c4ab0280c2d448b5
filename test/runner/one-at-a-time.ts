import { mkdir, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { until } from '../support/until.ts'

// Lets a file begin only when no other file of its project runs: Vitest bounds the files of all
// projects that run beside each other, not those of one.

/** All processes of a run have one parent. */
const LOCK = join(tmpdir(), `sluice-one-at-a-time-${process.ppid}`)
/** All of these files together take half of it. */
const WITHIN_MS = 350_000

beforeAll(async () => {
  const take = () =>
    mkdir(LOCK).then(
      () => true,
      () => false,
    )
  await until('no other file runs', take, WITHIN_MS)
})

afterAll(() => rmdir(LOCK))
