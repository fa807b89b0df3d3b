/** The requests that add, change and remove clusters of a management server. */
import { CLUSTERS_PATH, clusterPath } from '../api/cluster-paths.ts'
import { send, sendForJson } from '../api/request.ts'
import { saveText } from '../browser/save-text.ts'
import type { ManagedCluster } from './clusters.ts'

export interface Registration {
  readonly cluster: ManagedCluster
  readonly command?: string
  readonly token?: string
}

export function importCluster(displayName: string): Promise<Registration> {
  return sendForJson(CLUSTERS_PATH, { method: 'POST', body: { displayName } })
}

export function startUpCluster(displayName: string, runtime: string, nodes: number): Promise<Registration> {
  const body = { displayName, source: 'up', runtime, nodes }
  return sendForJson(CLUSTERS_PATH, { method: 'POST', body })
}

/** Another command that installs the agent of an imported cluster. */
export function registerAgain(name: string): Promise<Omit<Registration, 'cluster'>> {
  return sendForJson(`${clusterPath(name)}/registration`, { method: 'POST', body: {} })
}

export async function startCluster(name: string): Promise<void> {
  await send(`${clusterPath(name)}/start`, { method: 'POST', body: {} })
}

export async function stopCluster(name: string): Promise<void> {
  await send(`${clusterPath(name)}/stop`, { method: 'POST', body: {} })
}

/** Starts a copy and returns its name. */
export async function forkCluster(name: string, displayName: string): Promise<string> {
  const path = `${clusterPath(name)}/fork`
  const { cluster } = await sendForJson<Registration>(path, { method: 'POST', body: { displayName } })
  return cluster.metadata.name ?? ''
}

/** Returns what could not be removed from the cluster. `isForced`: machines that cannot be reached are given up. */
export async function removeCluster(name: string, isForced: boolean): Promise<readonly string[]> {
  const options = { method: 'DELETE', ...(isForced && { body: { force: true } }) } as const
  const { left = [] } = await sendForJson<{ left?: readonly string[] }>(clusterPath(name), options)
  return left
}

/** The authority of the server's certificate as a file, for curl and agents. */
export async function saveAuthority(): Promise<void> {
  const { value } = await sendForJson<{ value: string }>('/v3/settings/cacerts')
  saveText('hyperkube-ca.crt', value, 'application/x-pem-file')
}
