import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { createProblem, PROBLEMS, ProblemSchema } from './problem.ts'

describe('a problem', () => {
  it('tells its kind and what happened', () => {
    assert.deepEqual(
      createProblem('job_pending', { detail: 'It goes on.', instance: '/sources', requestId: 'r1', jobId: 'j1' }),
      {
        type: 'about:blank',
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

  it('leaves out what it was not given', () => {
    assert.deepEqual(Object.keys(createProblem('internal', { detail: 'd', requestId: 'r1' })), [
      'type',
      'title',
      'status',
      'detail',
      'code',
      'requestId',
    ])
  })

  it('carries the faults of a request in the shape that is documented', () => {
    const errors = [{ pointer: '/title', code: 'required' as const, message: 'title is required.' }]
    const isValid = new Ajv({ allowUnionTypes: true, validateFormats: false }).compile(ProblemSchema)
    assert.ok(
      isValid(createProblem('request_invalid', { detail: 'd', requestId: 'r', errors, total: 1 })),
      JSON.stringify(isValid.errors),
    )
  })

  it('is an error of HTTP, whatever its kind', () => {
    for (const { status } of Object.values(PROBLEMS)) assert.ok(status >= 400 && status < 600)
  })
})
