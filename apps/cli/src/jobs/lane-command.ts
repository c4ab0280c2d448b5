// The commands `sluice pause` and `sluice resume`: whether workers fetch the jobs of a lane.
import type { LaneOperationKind } from '@sluice/contract'
import { Argument, Command } from 'commander'
import { type ApiOptions, apiOptions } from '../find-api.ts'
import type { AdminDeps } from './admin-client.ts'

const TEXTS = {
  pause: {
    description: 'Pauses a lane: its jobs wait, and more are accepted',
    done: (lane: string) => `The ${lane} lane is paused. \`sluice resume ${lane}\` ends that.`,
  },
  resume: {
    description: 'Resumes a paused lane',
    done: (lane: string) => `Workers fetch the jobs of the ${lane} lane.`,
  },
}

/** `sluice pause` or `sluice resume`. */
export function laneCommand(kind: LaneOperationKind, deps: AdminDeps): Command {
  const lane = new Argument('<lane>', 'bulk has imports, interactive the jobs with a waiting caller')
  return apiOptions(new Command(kind).description(TEXTS[kind].description), 'operator')
    .addArgument(lane.choices(['bulk', 'interactive']))
    .action(async (name: string, options: ApiOptions) => {
      await (await deps.openClient(options)).operateLane(kind, name)
      deps.print(TEXTS[kind].done(name))
    })
}
