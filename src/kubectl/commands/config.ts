/** kubectl config: shows and changes kubeconfig files. */
import { type Command, type CommandRow, defineGroup, row } from '../command.ts'
import type * as ChangingFile from '../config/changing.ts'
import type * as ShowingFile from '../config/showing.ts'

type ShowingModule = typeof ShowingFile
type ChangingModule = typeof ChangingFile

function shows(name: string, short: string, pick: (file: ShowingModule) => Command): CommandRow {
  return { name, short, load: async () => pick(await import('../config/showing.ts')) }
}

function changes(name: string, short: string, pick: (file: ChangingModule) => Command): CommandRow {
  return { name, short, load: async () => pick(await import('../config/changing.ts')) }
}

export const config: Command = defineGroup({
  name: 'config',
  long: `Show and change kubeconfig files, for example with "kubectl config set current-context my-context".

kubectl reads these files:

1. With --kubeconfig, only that file.
2. Otherwise the files in $KUBECONFIG, merged. A change goes to the file that contains the value. A new value goes to the first existing file, or to the last of the list if none exists.
3. Otherwise \${HOME}/.kube/config.`,
  commands: [
    shows('current-context', 'Print the current context', (file) => file.currentContext),
    changes('delete-cluster', 'Delete a cluster from the kubeconfig', (file) => file.deleteCluster),
    changes('delete-context', 'Delete a context from the kubeconfig', (file) => file.deleteContext),
    changes('delete-user', 'Delete a user from the kubeconfig', (file) => file.deleteUser),
    shows('get-clusters', 'Print the clusters of the kubeconfig', (file) => file.getClusters),
    shows('get-contexts', 'Print one or many contexts', (file) => file.getContexts),
    shows('get-users', 'Print the users of the kubeconfig', (file) => file.getUsers),
    changes('rename-context', 'Rename a context in the kubeconfig', (file) => file.renameContext),
    changes('set', 'Set one value in a kubeconfig', (file) => file.set),
    changes('set-cluster', 'Set a cluster in the kubeconfig', (file) => file.setCluster),
    changes('set-context', 'Set a context in the kubeconfig', (file) => file.setContext),
    row(
      'set-credentials',
      'Set a user in the kubeconfig',
      async () => (await import('../config/credentials.ts')).setCredentials,
    ),
    changes('unset', 'Remove one value from a kubeconfig', (file) => file.unset),
    { ...changes('use-context', 'Set the current context', (file) => file.useContext), aliases: ['use'] },
    shows('view', 'Print the kubeconfig', (file) => file.view),
  ],
})
