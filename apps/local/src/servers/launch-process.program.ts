import { launchProcess } from './launch-process.ts'

const [log = '', command = '', ...args] = process.argv.slice(2)
const { pid } = await launchProcess({ command, args, log, graceMs: 500 })
process.send?.(pid)
