/** kubectl config: what kubeconfig files say, and changes to it. */
import { type Command, type CommandRow, defineCommand } from '../command.ts'
import type * as ChangingFile from '../config/changing.ts'
import type * as ShowingFile from '../config/showing.ts'
import { requireSubcommand } from '../subcommand.ts'

type Showing = typeof ShowingFile
type Changing = typeof ChangingFile

function shows(name: string, short: string, pick: (file: Showing) => Command): CommandRow {
  return { name, short, load: async () => pick(await import('../config/showing.ts')) }
}

function changes(name: string, short: string, pick: (file: Changing) => Command): CommandRow {
  return { name, short, load: async () => pick(await import('../config/changing.ts')) }
}

export const config: Command = defineCommand({
  name: 'config',
  use: 'SUBCOMMAND [options]',
  long: `Look at kubeconfig files and change them, as with "kubectl config set current-context my-context".

Which files are read:

1. With --kubeconfig, that file only.
2. Else those that $KUBECONFIG lists, merged. What is changed is changed where it stands; what is new goes into the first file that is there, or the last of the list when there is none.
3. Else \${HOME}/.kube/config.`,
  flags: {},
  commands: [
    shows('current-context', 'Print the current context', (file) => file.currentContext),
    changes('delete-cluster', 'Delete a cluster from the kubeconfig', (file) => file.deleteCluster),
    changes('delete-context', 'Delete a context from the kubeconfig', (file) => file.deleteContext),
    changes('delete-user', 'Delete a user from the kubeconfig', (file) => file.deleteUser),
    shows('get-clusters', 'Print the clusters of the kubeconfig', (file) => file.getClusters),
    shows('get-contexts', 'Print one or many contexts', (file) => file.getContexts),
    shows('get-users', 'Print the users of the kubeconfig', (file) => file.getUsers),
    changes('rename-context', 'Rename a context of the kubeconfig', (file) => file.renameContext),
    changes('set', 'Set one value of a kubeconfig', (file) => file.set),
    changes('set-cluster', 'Set a cluster of the kubeconfig', (file) => file.setCluster),
    changes('set-context', 'Set a context of the kubeconfig', (file) => file.setContext),
    {
      name: 'set-credentials',
      short: 'Set a user of the kubeconfig',
      load: async () => (await import('../config/credentials.ts')).setCredentials,
    },
    changes('unset', 'Take one value out of a kubeconfig', (file) => file.unset),
    { ...changes('use-context', 'Make a context the current one', (file) => file.useContext), aliases: ['use'] },
    shows('view', 'Print the kubeconfig', (file) => file.view),
  ],
  run: requireSubcommand,
})
