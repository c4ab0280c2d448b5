import assert from 'node:assert/strict'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { describe, it } from 'vitest'
import { createProblem, ProblemSchema } from './problem.ts'
import { PROBLEMS } from './problems.ts'

const isValid = formats.default(new Ajv({ allowUnionTypes: true })).compile(ProblemSchema)

describe('a problem', () => {
  it('has its kind and its details', () => {
    assert.deepEqual(
      createProblem('job_pending', {
        detail: 'It goes on.',
        instance: '/sources',
        requestId: 'r1',
        jobId: 'j1',
      }),
      {
        type: '/docs/problems#job_pending',
        title: 'Job not done yet',
        status: 504,
        detail: 'It goes on.',
        instance: '/sources',
        code: 'job_pending',
        requestId: 'r1',
        jobId: 'j1',
      },
    )
  })

  it('has the meaning and the remedy of its kind without a detail', () => {
    const { detail } = createProblem('headers_too_large', { requestId: 'r1' })
    assert.equal(
      detail,
      'The request line and the headers are larger than 16 KiB, or there are more than 100 headers. Send fewer or shorter headers.',
    )
  })

  it('leaves out absent members', () => {
    assert.deepEqual(Object.keys(createProblem('internal', { detail: 'd', requestId: 'r1' })), [
      'type',
      'title',
      'status',
      'detail',
      'code',
      'requestId',
    ])
  })

  it('carries the faults of a request in the documented shape', () => {
    const errors = [{ pointer: '/title', code: 'required' as const, message: 'title is required.' }]
    assert.ok(
      isValid(createProblem('request_invalid', { detail: 'd', requestId: 'r', errors, total: 1 })),
      JSON.stringify(isValid.errors),
    )
  })

  it('names any requested path as a URI reference', () => {
    for (const [path, instance] of [
      ['/jobs/%C3%A9', '/jobs/%C3%A9'],
      ['/%', '/%25'],
      ['/%zz|"é', '/%25zz%7C%22%C3%A9'],
      ['/[^]{`}\\#<>', '/%5B%5E%5D%7B%60%7D%5C%23%3C%3E'],
    ] as const) {
      const problem = createProblem('route_unknown', {
        detail: 'd',
        instance: path,
        requestId: 'r',
      })
      assert.equal(problem.instance, instance)
      assert.ok(isValid(problem), JSON.stringify(isValid.errors))
    }
  })

  it('has an HTTP status of an error, for every kind', () => {
    for (const { status } of Object.values(PROBLEMS)) assert.ok(status >= 400 && status < 600)
  })
})
