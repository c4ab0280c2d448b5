#!/usr/bin/env node
// The program `sluice-import`: `sluice import` in a separate package.
import { runApart } from '@sluice/terminal/run-apart'
import { killedImport } from './killed-import.ts'

await runApart(() => import('./sluice-import.ts'), killedImport)
