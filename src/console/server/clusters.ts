/** The clusters of a management server, and their states in words. */
import type { AnyCondition } from '#meta/conditions.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Tone } from '../parts/tone.ts'

export interface ManagedCluster extends KubeObject {
  readonly spec: {
    readonly displayName: string
    readonly description?: string
    readonly source: 'local' | 'imported' | 'up' | 'built'
    readonly agent?: 'hyperkube' | 'remotedialer'
    readonly up?: {
      readonly running?: boolean
      readonly runtime: string
      readonly nodes: number
      readonly forkOf?: string
    }
    readonly build?: { readonly template?: string; readonly approval?: string }
    readonly authorizedEndpoint?: AuthorizedEndpoint
  }
  readonly status?: {
    readonly conditions?: readonly AnyCondition[]
    readonly version?: string
    readonly nodes?: { readonly total: number; readonly ready: number }
    readonly capacity?: Readonly<Record<string, string>>
    readonly allocatable?: Readonly<Record<string, string>>
    readonly agent?: {
      readonly version?: string
      readonly address?: string
      readonly connectedAt?: string
      readonly disconnectedAt?: string
    }
    readonly build?: {
      readonly sshPublicKey?: string
      readonly appliedAt?: string
      readonly operation?: string
      readonly hostKeys?: readonly { readonly host: string; readonly type: string; readonly fingerprint: string }[]
    }
  }
  /** The user may change and remove it. */
  readonly isOwner?: boolean
}

export interface AuthorizedEndpoint {
  readonly enabled: boolean
  readonly fqdn?: string
  readonly certificateAuthority?: string
  readonly addresses?: readonly string[]
}

export interface ClusterState {
  readonly text: string
  readonly tone: Tone
  /** When a disconnection began. */
  readonly since?: string
  /** At most three causes of a state that is not good. */
  readonly causes: readonly string[]
  /** Requests to the cluster can be answered. */
  readonly isReachable: boolean
}

export const LOCAL_CLUSTER = 'local'

export const SOURCES: Readonly<Record<ManagedCluster['spec']['source'], string>> = {
  local: 'this server',
  imported: 'imported',
  up: 'on the machine of the server',
  built: 'built by this server',
}

export function stateOf({ metadata, spec, status }: ManagedCluster): ClusterState {
  const conditions = status?.conditions ?? []
  const is = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True')
  const state = (text: string, tone: Tone, isReachable = false): ClusterState => ({
    text,
    tone,
    causes: causesIn(conditions),
    isReachable,
  })
  if (metadata.deletionTimestamp !== undefined) return state('Being removed', 'busy')
  if (spec.up?.running === false) return { ...state('Stopped', 'busy'), causes: [] }
  if (is('Ready') || spec.source === 'local') return state('Ready', 'good', true)
  if (spec.source === 'up') {
    const isFailed = conditions.some((one) => one.type === 'Running' && one.reason === 'StartFailed')
    return isFailed ? state('Start failed', 'bad') : state('Starting', 'busy')
  }
  if (is('Pending')) return state('Waits for approval', 'busy')
  return { ...state(...agentState(spec, status, is('Provisioned')), is('Connected')), ...sinceOf(status?.agent) }
}

function agentState(
  { source }: ManagedCluster['spec'],
  status: ManagedCluster['status'],
  isProvisioned: boolean,
): readonly [text: string, tone: Tone] {
  const { connectedAt, disconnectedAt } = status?.agent ?? {}
  if (disconnectedAt !== undefined) return ['Disconnected', 'bad']
  if (connectedAt !== undefined) return ['Not ready', 'bad']
  return [source === 'built' && !isProvisioned ? 'Being built' : 'Waits for its agent', 'busy']
}

function sinceOf(agent: { readonly disconnectedAt?: string } = {}): Pick<ClusterState, 'since'> {
  return agent.disconnectedAt === undefined ? {} : { since: agent.disconnectedAt }
}

/** Several conditions often have the same cause. */
function causesIn(conditions: readonly AnyCondition[]): readonly string[] {
  const messages = new Map<string, string>()
  for (const condition of conditions) {
    const { type, message = '' } = condition
    if (isProblem(condition) && message !== '' && !messages.has(message)) messages.set(message, type)
  }
  return [...messages].map(([message, type]) => `${type}: ${message}`).slice(0, 3)
}

/** `Pending` and `Waiting` are the conditions that should be false. */
export function isProblem({ type, status }: Pick<AnyCondition, 'type' | 'status'>): boolean {
  if (type === 'Pending') return false
  return type === 'Waiting' ? status === 'True' : status !== 'True'
}
