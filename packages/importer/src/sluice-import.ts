// Wires the command of `sluice-import` to this process.
import { processEnv } from '@sluice/process/settings'
import { createPrinter, runProgram } from '@sluice/terminal'
import manifest from '../package.json' with { type: 'json' }
import { importCommand } from './import-command.ts'

const say = createPrinter((text) => process.stdout.write(text))
const command = importCommand({ folder: process.cwd(), env: processEnv(), process, say })
await runProgram(command.name('sluice-import').version(manifest.version))
