/** kubectl options: prints the global flags. */
import { type Command, defineCommand } from '../command.ts'
import { globalFlags } from '../global-flags.ts'
import { flagsText } from '../help.ts'

export const options: Command = defineCommand({
  name: 'options',
  use: '[flags] [options]',
  long: 'Print the flags that all commands share.',
  flags: {},
  run({ stdout, env }) {
    stdout.write(`The following options can be passed to any command:\n\n${flagsText({ ...globalFlags(env) })}\n`)
    return Promise.resolve()
  },
})
