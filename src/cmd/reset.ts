/** `hyperkube reset`: stops a cluster and deletes what is its own: state, certificates, its entry in the kubeconfig. */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

import { removeOwned } from '#client/kubeconfig.ts'
import { removeMachineFolders } from '#cluster/machine-folders.ts'
import { removeFurtherNodes, removeLinks } from '#cluster/machine-leftovers.ts'
import { RUNTIME_FILE } from '#cluster/runtime-file.ts'
import { removeContainerd } from '#kubelet/containerd/stop.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { readClusterFile } from './cluster-file.ts'
import { DATA_DIR_FLAGS, dataDir } from './data-dir.ts'
import { stopCluster } from './down.ts'

function cannotRemove(cause: Error): never {
  throw new ProgramError(`What pods had on this machine cannot be removed: ${cause.message}`, { cause })
}

/** What a cluster keeps in its data directory. Whatever else is there is not ours. */
const OWN = /^(?:store\.db(?:[-.].*)?|pki|encryption\.key|cluster\.json|runtime\.json|bootstrap\.kubeconfig|up\.log)$/

export const reset: Program = defineProgram({
  name: 'reset',
  long:
    'reset stops the cluster of a data directory and deletes it: objects, certificates, containers and images, and its context in the kubeconfig.\n\n' +
    'Snapshots stay unless asked for. Files and contexts that are not its own are left alone.',
  version: kubernetesVersion(),
  flags: {
    cluster: {
      'data-dir': DATA_DIR_FLAGS['data-dir'],
      kubeconfig: flag(string, '', 'file that has its context (default: the one "up" wrote to)'),
      snapshots: flag(bool, false, 'delete its snapshots too'),
    },
  },
  async run({ flags, stdout, clock, ...context }) {
    const { path } = dataDir({ ...flags, datastore: 'sqlite' }, context)
    const names: string[] = await readdir(path).catch(() => [])
    const { kubeconfig = join(homedir(), '.kube', 'config') } = (await readClusterFile(path)) ?? {}
    await stopCluster(path, clock)
    await removeFurtherNodes({ dataDir: path, clock, ...context }).catch(cannotRemove)
    const hadContainers = await removeContainerd({ dataDir: path, clock, ...context })
    await removeLinks(path)
    // Those of others have other names for what runs pods.
    if (names.includes(RUNTIME_FILE)) await removeMachineFolders(path).catch(cannotRemove)
    const file = flags.kubeconfig === '' ? kubeconfig : resolve(context.cwd, flags.kubeconfig)
    const removed = await removeOwned(file, path).catch((cause: Error) => {
      throw new ProgramError(cause.message, { cause })
    })
    const own = names.filter((name) => OWN.test(name) || (flags.snapshots && name === 'snapshots'))
    for (const name of own) await rm(join(path, name), { recursive: true, force: true })
    // Only when nothing is left in it.
    await rmdir(path).catch(() => undefined)
    const wasThere = own.length > 0 || hadContainers
    stdout.write(wasThere ? `Deleted the cluster in ${path}\n` : `There is no cluster in ${path}\n`)
    for (const name of removed) stdout.write(`Removed context "${name}" from ${file}\n`)
    return 0
  },
})
