/** What is left of a pod whose containers have ended, in the runtime and on the disk. */
import type { PodSpec } from '#apis/core/v1.ts'

import type { ContainerRecord } from '../container-runs.ts'
import type { PodHost } from './pod-host.ts'

type Means = Pick<PodHost, 'runtime' | 'held' | 'files'>

/** `own` may be newer than the last listing. */
const sandboxesOf = ({ held }: Means, uid: string, own?: string): Set<string> =>
  new Set([...held.of(uid).sandboxes.map(({ id }) => id), ...(own === undefined ? [] : [own])])

export async function stopSandboxes(means: Means, uid: string, own?: string): Promise<void> {
  for (const podSandboxId of sandboxesOf(means, uid, own)) await means.runtime.stopPodSandbox({ podSandboxId })
}

export async function removeAll(means: Means, uid: string, own?: string): Promise<void> {
  for (const { id } of means.held.of(uid).containers) await means.runtime.removeContainer({ containerId: id })
  for (const podSandboxId of sandboxesOf(means, uid, own)) await means.runtime.removePodSandbox({ podSandboxId })
  await means.files.remove(uid)
}

const NEVER_SEEN = 'The container could not be located when the pod was terminated'

/** Of a pod that is over, nobody waits: who never ran is said to be lost, once the turn of its like had come. */
export function giveUpMissing({ initContainers = [] }: PodSpec, records: readonly ContainerRecord[]): void {
  const hasRun = records.some(({ role, run }) => role === 'main' && run !== undefined)
  for (const record of records) {
    if (record.run !== undefined) record.waiting = undefined
    if (record.run !== undefined || record.role !== 'main' || (initContainers.length > 0 && !hasRun)) continue
    const end = { finishedMs: 0, exitCode: 137, reason: 'ContainerStatusUnknown', message: NEVER_SEEN }
    record.run = { id: '', startedMs: 0, end }
  }
}
