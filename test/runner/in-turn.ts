import { beforeAll } from 'vitest'
import { takeTurn } from './turns.ts'

// Set up before each fault test's file: no two of them run at once, for both take from the machine what the other one waits for.

/** All files that may be before this one. */
const LINE_MS = 600_000

beforeAll(() => takeTurn(process.env.FAULT_TURNS ?? ''), LINE_MS)
