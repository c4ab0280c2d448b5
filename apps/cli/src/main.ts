// The front door of `sluice`: an import runs in a child process, and only the child loads it.
import { runApart } from '@sluice/terminal/run-apart'

const load = () => import('./sluice.ts')
if (process.argv[2] !== 'import') await load()
else await runApart(load, (await import('@sluice/importer/killed')).killedImport)
