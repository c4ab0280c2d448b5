import assert from 'node:assert/strict'
import { describeApi } from '@sluice/api/openapi'
import { DEFAULT_LIMITS } from '@sluice/contract'
import { test } from 'vitest'
import { WINDOWS } from './worst-requests.ts'

test('each route of the API has its worst request', () => {
  const routes = Object.values(describeApi(DEFAULT_LIMITS).paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  const sent = new Set(Object.values(WINDOWS).flatMap((window) => Object.keys(window)))
  assert.deepEqual([...sent].sort(), routes.sort())
})
