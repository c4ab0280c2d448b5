import { beforeAll } from 'vitest'
import { scale } from '../support/scale.ts'
import { takeTurn } from './turns.ts'

// Makes a file of fault tests wait for its turn: two of them at once would slow down the recoveries that both measure.

/** Long enough for all files that may come first. */
const LINE_MS = scale(600_000, 3_600_000)

beforeAll(() => takeTurn(process.env.FAULT_TURNS ?? ''), LINE_MS)
