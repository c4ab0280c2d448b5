import {
  DEFAULT_LIMITS,
  parseIsoDate,
  type ThreadRequest,
  ThreadRequestSchema,
} from '@sluice/contract'
import { Ajv } from 'ajv'

const ajv = new Ajv({
  allowUnionTypes: true,
  formats: {
    'well-formed': (text: string) => text.isWellFormed(),
    'date-time': (text: string) => parseIsoDate(text) !== undefined,
  },
})

/** Sluice's own request schema, compiled once; it stops at the first fault. */
export const isThread = ajv.compile<ThreadRequest>(ThreadRequestSchema(DEFAULT_LIMITS))
