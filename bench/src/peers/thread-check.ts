import { DEFAULT_LIMITS, FORMATS, type ThreadRequest, ThreadRequestSchema } from '@sluice/contract'
import { Ajv } from 'ajv'

const ajv = new Ajv({ allowUnionTypes: true, formats: FORMATS })

/** Sluice's own request schema, compiled once; it stops at the first fault. */
export const isThread = ajv.compile<ThreadRequest>(ThreadRequestSchema(DEFAULT_LIMITS))
