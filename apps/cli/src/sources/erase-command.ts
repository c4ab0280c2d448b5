// The command `sluice erase`: it erases the quotes of a speaker.
import { setTimeout as delay } from 'node:timers/promises'
import { type Erasure, ErasureSchema, SERVICES } from '@sluice/contract'
import { type ApiOptions, apiOptions, counted, printAnswer, UserError } from '@sluice/terminal'
import { Command, Option } from 'commander'
import { createAnswerCheck } from '../answers.ts'
import { createAsk } from '../jobs/admin-client.ts'
import { type RemoveDeps, requireYes } from './sources-commands.ts'

interface EraseOptions extends ApiOptions {
  service?: string
  mode?: string
  tenant?: string
  dryRun?: true
  suppress?: true
  reason?: string
  yes?: true
  json?: true
}

const POLL_MS = 500
const check = createAnswerCheck(ErasureSchema)

/** `sluice erase`. Throws UserError if the API refuses, or if quotes could not be erased. */
export function eraseCommand(deps: RemoveDeps): Command {
  const command = new Command('erase').description(
    'Erases the texts and the name of a speaker in all threads. Needs a key that may delete',
  )
  return apiOptions(command, 'importer')
    .argument('<speaker>', 'the speaker as it was posted')
    .addOption(new Option('--service <service>', 'only in its threads').choices(SERVICES))
    .addOption(
      new Option('--mode <mode>', 'leaves the messages without words, or removes them').choices([
        'redact',
        'remove',
      ]),
    )
    .option('--tenant <name>', "the tenant of the threads, with an operator's key")
    .option('--reason <text>', 'why, for people: without the name')
    .option('--suppress', 'stores later posts of the speaker without words, too')
    .option('--dry-run', 'only counts')
    .option('--yes', 'erases without asking')
    .option('--json', 'prints the answer of the API')
    .action((speaker, options) => erase(deps, speaker, options))
}

async function erase(deps: RemoveDeps, speaker: string, options: EraseOptions): Promise<void> {
  const { tenant, service, mode, suppress, reason } = options
  const query = tenant === undefined ? '' : `?${new URLSearchParams({ tenant })}`
  const { ask } = await createAsk(deps, options, tenant === undefined ? 'importer' : 'operator')

  async function run(dryRun: boolean): Promise<Erasure> {
    const request = { speaker, service, mode, suppress, dryRun, reason }
    let erasure = await ask(check, `/erasures${query}`, request)
    if (!dryRun)
      deps.show(
        `Erasure ${erasure.id} goes on if you end this command. It waits while lane bulk is paused.`,
      )
    while (erasure.state !== 'completed') {
      await delay(POLL_MS)
      erasure = await ask(check, `/erasures/${erasure.id}${query}`)
    }
    return erasure
  }

  const isDry = options.dryRun === true
  if (!isDry && !options.yes) {
    const of = `${counted((await run(true)).quotes, 'message')} of this speaker`
    await requireYes(deps, `Erase ${of}? This can't be undone.`, 'erase')
  }
  const erasure = await run(isDry)
  printAnswer(deps, options, erasure, ({ quotes, threads }) => [
    `${counted(quotes, 'message')} ${isDry ? 'would be ' : ''}erased, ${counted(threads, 'thread')} examined.`,
  ])
  if (erasure.failed > 0)
    throw new UserError(
      `${counted(erasure.failed, 'job')} failed: see \`sluice jobs list\`, and retry them.`,
    )
}
