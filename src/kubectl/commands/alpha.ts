/** kubectl alpha: the parent command of alpha commands. v1.36 has none. */
import { type Command, defineCommand } from '../command.ts'

const NONE = 'No alpha commands are available in this version of kubectl\n'

export const alpha: Command = defineCommand({
  name: 'alpha',
  use: '',
  long: 'Commands for alpha features.',
  flags: {},
  insteadOfHelp: NONE,
  run({ stderr }) {
    stderr.write(NONE)
    return Promise.resolve()
  },
})
