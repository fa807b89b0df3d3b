/**
 * Runs one check of a worker node and starts missing processes: only the missing ones if others run, or all in order. A
 * healthy node is not changed.
 */
import { cloudNodeName, installCloudTools } from './cloud.ts'
import { CLEAN_MARK } from './layout.ts'
import { CrashError, type Outcome, RetryError } from './outcome.ts'
import { PROCESS_NAMES, type ProcessName } from './process-names.ts'
import { endNetworkPolicies, STARTS } from './processes.ts'
import { podNetworkKind, wantedProcesses } from './settings.ts'
import { isRunning, restartProxy, type Worker } from './worker.ts'

/** Rejects only for the signal; failures become the outcome. */
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

/** Running programs could not be replaced: they are stopped and deleted, and the next check uses the new ones. */
async function removeOldPrograms({ host, layout }: Worker): Promise<void> {
  const separator = host.system === 'windows' ? '\\' : '/'
  const folders: readonly (readonly [folder: string, users: readonly ProcessName[]])[] =
    host.system === 'linux'
      ? [[layout.kubernetesBin, PROCESS_NAMES.toReversed()]]
      : [
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

/**
 * Checks each process again before its turn, to include those that died in the meantime. Returns the started processes
 * in order.
 */
async function startMissing(worker: Worker): Promise<readonly ProcessName[]> {
  const { host, settings } = worker
  if (settings.networkPolicyOptions === undefined) await endNetworkPolicies(host)
  if (await isWhole(worker)) return []
  await worker.settle?.()
  const started: ProcessName[] = []
  for (const name of wantedProcesses(settings)) {
    if (started.includes(name) || (await isRunning(worker, name))) continue
    worker.starting?.(name)
    await STARTS[name](worker)
    // Starting kubelet includes flanneld.
    started.push(...(name === 'kubelet' ? (['kubelet', 'flanneld'] as const) : [name]))
  }
  return started
}

async function isWhole(worker: Worker): Promise<boolean> {
  for (const name of wantedProcesses(worker.settings)) if (!(await isRunning(worker, name))) return false
  return true
}
