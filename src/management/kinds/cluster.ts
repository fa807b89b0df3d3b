/** Cluster: a Kubernetes cluster that the management server knows. Its name is its id in addresses: `c-x7k2p`. */
import type { Kind } from '#apis/kinds.ts'
import type { Condition } from '#meta/conditions.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  CONDITIONS,
  defineManagementKind,
  type ManagementKind,
  immutable,
  INTEGER,
  NAME,
  oneOf,
  QUANTITIES,
  record,
  TEXT,
  TIME,
} from './definition.ts'

export interface Cluster extends KubeObject {
  readonly spec: ClusterSpec
  readonly status?: ClusterStatus
}

export interface ClusterSpec {
  readonly displayName: string
  readonly description?: string
  /** `local`: the management cluster itself. `imported`: an agent in the cluster connects to the server. */
  readonly source: 'local' | 'imported'
}

export interface ClusterStatus {
  readonly conditions?: readonly Condition[]
  /** The uid of its namespace kube-system, which identifies a cluster. */
  readonly uid?: string
  readonly version?: string
  readonly nodes?: { readonly total: number; readonly ready: number }
  readonly capacity?: Readonly<Record<string, string>>
  readonly allocatable?: Readonly<Record<string, string>>
  readonly agent?: {
    readonly version?: string
    /** The address that the agent connects from. */
    readonly address?: string
    readonly connectedAt?: string
    readonly disconnectedAt?: string
  }
}

/** The agent of the cluster is connected. */
export const CONNECTED = 'Connected'
/** The API server of the cluster answers. */
export const READY = 'Ready'
/** The roles of the server exist in the cluster. */
export const ROLES_APPLIED = 'RolesApplied'

/** The name of the Cluster that is the management cluster. */
export const LOCAL_CLUSTER = 'local'

export const CLUSTER: ManagementKind<Cluster> = defineManagementKind<Cluster>({
  kind: 'Cluster',
  plural: 'clusters',
  description: 'A Kubernetes cluster that the management server knows.',
  spec: record({ displayName: NAME, description: TEXT, source: immutable(oneOf('local', 'imported')) }, [
    'displayName',
    'source',
  ]),
  status: record({
    conditions: CONDITIONS,
    uid: TEXT,
    version: TEXT,
    nodes: record({ total: INTEGER, ready: INTEGER }),
    capacity: QUANTITIES,
    allocatable: QUANTITIES,
    agent: record({ version: TEXT, address: TEXT, connectedAt: TIME, disconnectedAt: TIME }),
  }),
  columns: [
    { name: 'Display Name', jsonPath: '.spec.displayName' },
    { name: 'Source', jsonPath: '.spec.source' },
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Version', jsonPath: '.status.version' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes.total' },
  ],
})
export const Clusters: Kind<Cluster> = CLUSTER.kind
