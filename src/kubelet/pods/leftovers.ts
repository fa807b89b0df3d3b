/** What is left of a pod whose containers have ended, in the runtime and on the disk. */
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
