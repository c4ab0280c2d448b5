import { Command } from 'commander'

/** The program `sluice`, made of its commands. */
export function buildCli(commands: readonly Command[]): Command {
  const program = new Command('sluice')
    .description('Takes in conversation threads over HTTP and keeps each exactly once in MongoDB.')
    .showHelpAfterError()
  for (const command of commands) program.addCommand(command)
  return program
}
