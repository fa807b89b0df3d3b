/** The clusters of a management server: their states in words, and the requests that change them. */
import { send, sendForJson } from '../api/request.ts'
import type { Tone } from '../parts/tone.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

export interface ManagedCluster {
  readonly metadata: { readonly name: string; readonly creationTimestamp?: string; readonly deletionTimestamp?: string }
  readonly spec: {
    readonly displayName: string
    readonly description?: string
    readonly source: 'local' | 'imported' | 'up' | 'built'
    readonly up?: { readonly running?: boolean; readonly runtime: string; readonly nodes: number }
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly version?: string
    readonly nodes?: { readonly total: number; readonly ready: number }
    readonly capacity?: Readonly<Record<string, string>>
    readonly agent?: { readonly connectedAt?: string; readonly disconnectedAt?: string }
  }
}

export interface ClusterState {
  readonly text: string
  readonly tone: Tone
  /** At most three causes of a state that is not good. */
  readonly causes: readonly string[]
  /** Requests to the cluster can be answered. */
  readonly isReachable: boolean
}

export async function loadClusters(): Promise<readonly ManagedCluster[]> {
  return (await sendForJson<{ items: readonly ManagedCluster[] }>('/v3/clusters')).items
}

export function stateOf({ metadata, spec, status }: ManagedCluster): ClusterState {
  const conditions = status?.conditions ?? []
  const is = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True')
  const causes = conditions
    .filter((one) => one.status !== 'True' && one.type !== 'Pending' && (one.message ?? '') !== '')
    .map(({ type, message = '' }) => `${type}: ${message}`)
    .slice(0, 3)
  const state = (text: string, tone: Tone, isReachable = false): ClusterState => ({ text, tone, causes, isReachable })
  if (metadata.deletionTimestamp !== undefined) return state('Being removed', 'busy')
  if (spec.up?.running === false) return { ...state('Stopped', 'busy'), causes: [] }
  if (is('Ready') || spec.source === 'local') return state('Ready', 'good', true)
  if (spec.source === 'up') return state(is('Running') ? 'Starting' : 'Not running', 'busy')
  if (is('Pending')) return state('Waits for approval', 'busy')
  const [text, tone] = agentState(status?.agent)
  return state(text, tone, is('Connected'))
}

function agentState(agent: NonNullable<ManagedCluster['status']>['agent'] = {}): readonly [text: string, tone: Tone] {
  if (agent.disconnectedAt !== undefined) return [`Disconnected since ${agent.disconnectedAt}`, 'bad']
  return agent.connectedAt === undefined ? ['Waits for its agent', 'busy'] : ['Not ready', 'bad']
}

export interface Registration {
  readonly cluster: ManagedCluster
  readonly command?: string
  readonly token?: string
}

export function importCluster(displayName: string): Promise<Registration> {
  return sendForJson('/v3/clusters', { method: 'POST', body: { displayName } })
}

export function startUpCluster(displayName: string, nodes: number): Promise<Registration> {
  const body = { displayName, source: 'up', runtime: 'simulated', nodes }
  return sendForJson('/v3/clusters', { method: 'POST', body })
}

export async function changeCluster(name: string, action: 'start' | 'stop' | 'fork'): Promise<void> {
  await send(`${pathOf(name)}/${action}`, { method: 'POST', body: {} })
}

/** Returns what could not be removed from the cluster. */
export async function removeCluster(name: string): Promise<readonly string[]> {
  const { left = [] } = await sendForJson<{ left?: readonly string[] }>(pathOf(name), { method: 'DELETE' })
  return left
}

export async function loadKubeconfig(name: string): Promise<string> {
  const response = await send(`${pathOf(name)}/kubeconfig`, { method: 'POST', body: {} })
  return response.text()
}

function pathOf(name: string): string {
  return `/v3/clusters/${encodeURIComponent(name)}`
}
