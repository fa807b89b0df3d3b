/** Removes the containers, sandboxes and files of a pod whose containers have ended. */
import type { PodHost } from './pod-host.ts'

type CleanupHost = Pick<PodHost, 'runtime' | 'pleg' | 'files'>

/** `own` may be newer than the last relist. */
const sandboxesOf = ({ pleg }: CleanupHost, uid: string, own?: string): Set<string> =>
  new Set([...pleg.of(uid).sandboxes.map(({ id }) => id), ...(own === undefined ? [] : [own])])

export async function stopSandboxes(host: CleanupHost, uid: string, own?: string): Promise<void> {
  for (const podSandboxId of sandboxesOf(host, uid, own)) await host.runtime.stopPodSandbox({ podSandboxId })
}

export async function removeAll(host: CleanupHost, uid: string, own?: string): Promise<void> {
  for (const { id } of host.pleg.of(uid).containers) await host.runtime.removeContainer({ containerId: id })
  for (const podSandboxId of sandboxesOf(host, uid, own)) await host.runtime.removePodSandbox({ podSandboxId })
  await host.files.remove(uid)
}
