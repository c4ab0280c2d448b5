#!/usr/bin/env node
// The program `sluice-import`: `sluice import` in a separate package.
import { processEnv } from '@sluice/process/settings'
import { createPrinter, runApart, runProgram } from '@sluice/terminal'
import manifest from '../package.json' with { type: 'json' }
import { importCommand } from './import-command.ts'

const say = createPrinter((text) => process.stdout.write(text))
const command = importCommand({
  folder: process.cwd(),
  env: processEnv(),
  process,
  say,
  apart: runApart,
})
await runProgram(command.name('sluice-import').version(manifest.version))
