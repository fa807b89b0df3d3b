/** Commands that have their name and place but are not built yet. They say so: no stub pretends to work. */
import { type Command, type CommandRow, defineCommand } from './command.ts'

export function planned(name: string, short: string, group?: string): CommandRow {
  return {
    name,
    short,
    ...(group !== undefined && { group }),
    load: () => Promise.resolve(plannedCommand(name, short)),
  }
}

function plannedCommand(name: string, short: string): Command {
  return defineCommand({
    name,
    use: '',
    long: `${short}.\n\nThis command is not built yet. See CHANGELOG.md for what works today.`,
    flags: {},
    // Its flags are not there yet, so a wrong flag is not what is wrong.
    takesAnything: true,
    run({ stderr }) {
      stderr.write(`hyperkube kubectl ${name} is not built yet; see CHANGELOG.md for what works today\n`)
      return Promise.resolve(1)
    },
  })
}
