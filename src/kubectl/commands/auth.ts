/** kubectl auth: what one may do, who one is, and roles that are made to say what files say. */
import { type Command, defineCommand } from '../command.ts'
import { requireSubcommand } from '../subcommand.ts'

export const auth: Command = defineCommand({
  name: 'auth',
  use: '[flags] [options]',
  long: 'Look into authorization.',
  flags: {},
  commands: [
    {
      name: 'can-i',
      short: 'Check whether something may be done',
      load: async () => (await import('../auth/can-i.ts')).authCanI,
    },
    {
      name: 'reconcile',
      short: 'Bring roles and bindings to what files say',
      load: async () => (await import('../auth/reconcile.ts')).authReconcile,
    },
    {
      name: 'whoami',
      short: 'Show who one is',
      load: async () => (await import('../auth/whoami.ts')).authWhoami,
    },
  ],
  run: requireSubcommand,
})
