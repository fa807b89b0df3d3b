/**
 * One look at a worker: what is missing is started, alone where the others live, in order where none does. Nothing is
 * touched on a node that is whole.
 */
import { cloudNodeName, installCloudTools } from './cloud.ts'
import type { ProcessName } from './host.ts'
import { CLEAN_MARK } from './layout.ts'
import { CrashError, type Outcome, RetryError } from './outcome.ts'
import { STARTS, startKubelet, startKubeProxy } from './processes.ts'
import { podNetworkKind } from './settings.ts'
import { isRunning, restartProxy, type Worker } from './worker.ts'

const NAMES: readonly ProcessName[] = ['kubelet', 'flanneld', 'kube-proxy']

/** Never rejects but for the signal: what goes wrong is the outcome. */
export async function attempt(worker: Worker): Promise<Outcome> {
  try {
    podNetworkKind(worker.settings)
    await prepare(worker)
    return { kind: 'ok', started: await startMissing(worker) }
  } catch (error) {
    if (worker.signal.aborted) throw error
    if (!(error instanceof RetryError)) return { kind: 'crash', message: messageOf(error) }
    await restartProxy(worker)
    return { kind: 'retry', message: error.message }
  }
}

function messageOf(error: unknown): string {
  return error instanceof CrashError || error instanceof Error ? error.message : String(error)
}

async function prepare(worker: Worker): Promise<void> {
  const { host, layout, settings } = worker
  for (const folder of layout.folders) await host.files.makeFolder(folder)
  await removeOldPrograms(worker)
  await installCloudTools(worker)
  await host.environment.set('NODE_NAME', (await cloudNodeName(worker)) ?? settings.nodeName)
}

/** Programs that were running could not be replaced: they are stopped and removed, and the next look finds the new ones. */
async function removeOldPrograms({ host, layout }: Worker): Promise<void> {
  const separator = host.system === 'windows' ? '\\' : '/'
  const folders: readonly (readonly [folder: string, users: readonly ProcessName[]])[] = [
    [layout.kubernetesBin, ['kube-proxy', 'kubelet']],
    [layout.cniBin, ['flanneld']],
  ]
  let isAnyRemoved = false
  for (const [folder, users] of folders) {
    if (!(await host.files.exists(`${folder}${separator}${CLEAN_MARK}`))) continue
    for (const name of users) await host.processes.kill(name)
    await host.files.empty(folder)
    isAnyRemoved = true
  }
  if (isAnyRemoved) throw new RetryError('Old programs were removed')
}

async function startMissing(worker: Worker): Promise<readonly ProcessName[]> {
  const missing: ProcessName[] = []
  for (const name of NAMES) if (!(await isRunning(worker, name))) missing.push(name)
  if (missing.length === NAMES.length) {
    await startKubelet(worker)
    await startKubeProxy(worker)
    return missing
  }
  for (const name of missing) {
    // Who starts kubelet has started flanneld.
    if (name === 'flanneld' && missing.includes('kubelet')) continue
    await STARTS[name](worker)
  }
  return missing
}
