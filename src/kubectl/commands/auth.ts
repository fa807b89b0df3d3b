/** kubectl auth: checks permissions, shows the current user and reconciles RBAC objects. */
import { type Command, defineGroup, row } from '../command.ts'

export const auth: Command = defineGroup({
  name: 'auth',
  use: '[flags] [options]',
  long: 'Inspect authorization.',
  commands: [
    row('can-i', 'Check whether an action is allowed', async () => (await import('../auth/can-i.ts')).authCanI),
    row(
      'reconcile',
      'Reconcile roles and bindings with files',
      async () => (await import('../auth/reconcile.ts')).authReconcile,
    ),
    row(
      'whoami',
      'Show the attributes of the current user',
      async () => (await import('../auth/whoami.ts')).authWhoami,
    ),
  ],
})
