/** `hyperkube reset`: stops a cluster and deletes its state, certificates and kubeconfig entry. */
import { readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

import { removeOwned } from '#client/connection/kubeconfig.ts'
import { removeMachineFolders } from '#cluster/machine/machine-folders.ts'
import { removeExtraNodes, removeLinks } from '#cluster/machine/machine-leftovers.ts'
import { RUNTIME_FILE } from '#cluster/runtime-file.ts'
import { removeContainerd, type StopOptions } from '#containerd/stop.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import type { ProcessLock } from '#lib/process/lock.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { readClusterFile } from './cluster-file.ts'
import { stopCluster, takeStore } from './cluster-lock.ts'
import { isOwnFile, UNFINISHED_RESET } from './data-dir-files.ts'
import { DATA_DIR_FLAGS, dataDir } from './data-dir.ts'
import { STOP_MS } from './down.ts'
import { usedKubeconfigs } from './used-kubeconfigs.ts'

export const reset: Program = defineProgram({
  name: 'reset',
  long:
    'reset stops the cluster of a data directory and deletes it: objects, certificates, containers and images, and its context in the kubeconfig.\n\n' +
    'Snapshots stay unless --snapshots is set. Other files and contexts are left alone.',
  version: kubernetesVersion(),
  flags: {
    cluster: {
      'data-dir': DATA_DIR_FLAGS['data-dir'],
      kubeconfig: flag(string, '', 'file with its context (default: the files that "up" wrote to)'),
      snapshots: flag(bool, false, 'also delete its snapshots'),
    },
  },
  async run({ flags, stdout, clock, ...context }) {
    const { path } = dataDir({ ...flags, datastore: 'sqlite' }, context)
    const kubeconfigs = flags.kubeconfig === '' ? await kubeconfigsOf(path) : [resolve(context.cwd, flags.kubeconfig)]
    const { lock } = await stopCluster(path, clock, STOP_MS)
    using locks = new DisposableStack()
    locks.defer(() => lock?.release())
    const store = lock === undefined ? undefined : takeStore(path)
    locks.defer(() => store?.release())
    if (lock !== undefined) await writeFile(join(path, UNFINISHED_RESET), '')
    const hadContainers = await removeFromMachine({ dataDir: path, clock, ...context }).catch(cannotRemove)
    const removed = await removeContexts(kubeconfigs, path)
    const hadFiles = await removeFiles(path, flags.snapshots, [store, lock])
    const wasThere = hadFiles || hadContainers
    stdout.write(wasThere ? `Deleted the cluster in ${path}\n` : `There is no cluster in ${path}\n`)
    for (const [file, name] of removed) stdout.write(`Removed context "${name}" from ${file}\n`)
    return 0
  },
})

async function kubeconfigsOf(dataDir: string): Promise<readonly string[]> {
  // An unreadable file is reported when the cluster is stopped.
  const last = (await readClusterFile(dataDir).catch(() => undefined))?.kubeconfig
  const used = new Set([...(await usedKubeconfigs(dataDir)), ...(last === undefined ? [] : [last])])
  return used.size > 0 ? [...used] : [join(homedir(), '.kube', 'config')]
}

/** True if there were containers. */
async function removeFromMachine(options: StopOptions): Promise<boolean> {
  const { dataDir: path } = options
  await removeExtraNodes(options)
  const hadContainers = await removeContainerd(options)
  await removeLinks(path)
  // Only our data directories have a runtime file of this name.
  const names: string[] = await readdir(path).catch(() => [])
  if (names.includes(RUNTIME_FILE)) await removeMachineFolders(path)
  return hadContainers
}

function cannotRemove(cause: Error): never {
  throw new ProgramError(`Failed to remove containers, links or rules of pods: ${cause.message}`, { cause })
}

/** Returns each file with the name of the removed context. */
async function removeContexts(
  files: readonly string[],
  owner: string,
): Promise<readonly (readonly [string, string])[]> {
  const removed: (readonly [string, string])[] = []
  for (const file of files) {
    const names = await removeOwned(file, owner).catch((cause: Error) => {
      throw new ProgramError(cause.message, { cause })
    })
    removed.push(...names.map((name) => [file, name] as const))
  }
  return removed
}

/** Deletes the locks last, so that `up` does not start a half-deleted cluster. Returns true if there were files. */
async function removeFiles(
  path: string,
  withSnapshots: boolean,
  locks: readonly (ProcessLock | undefined)[],
): Promise<boolean> {
  const names: string[] = await readdir(path).catch(() => [])
  const own = names.filter((name) => isOwnFile(name) || (withSnapshots && name === 'snapshots'))
  const isLast = (name: string): boolean => name.endsWith('.lock') || name === UNFINISHED_RESET
  for (const name of own.filter((name) => !isLast(name))) await rm(join(path, name), { recursive: true, force: true })
  await rm(join(path, UNFINISHED_RESET), { force: true })
  for (const lock of locks) lock?.discard()
  // Only if the directory is empty.
  await rmdir(path).catch(() => undefined)
  return own.length > 0
}
