/**
 * The kind Cluster: a Kubernetes cluster that the management server manages. Its name, such as `c-x7k2p`, is its id
 * in URLs.
 */
import type { Kind } from '#apis/kinds.ts'
import type { Condition } from '#meta/conditions.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  BOOLEAN,
  CONDITIONS,
  defineManagementKind,
  type ManagementKind,
  immutable,
  INTEGER,
  list,
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
  /**
   * `local`: the management cluster itself. `imported`: an agent in the cluster connects to the server. `up`: a cluster of
   * `hyperkube up` on the machine of the server. `built`: the server builds it on machines.
   */
  readonly source: 'local' | 'imported' | 'up' | 'built'
  /**
   * The agent of an imported cluster. `hyperkube` (default): keeps its credentials in the cluster. `remotedialer`: Rancher's,
   * which sends the credential of its service account to the server.
   */
  readonly agent?: 'hyperkube' | 'remotedialer'
  /** Only of clusters with source `up`. */
  readonly up?: UpSettings
  /** Only of clusters with source `built`. */
  readonly build?: ClusterBuild
  readonly authorizedEndpoint?: AuthorizedEndpoint
}

/** A cluster of `hyperkube up`. */
export interface UpSettings {
  readonly runtime: 'simulated' | 'containerd'
  readonly nodes: number
  /** The cluster whose state this one begins with. */
  readonly forkOf?: string
  /** Default: true. A stopped cluster keeps its state. */
  readonly running?: boolean
}

/** The cluster file (docs/build.md), either as text or as an object. It has no keys and passwords. */
export interface ClusterBuild {
  readonly file?: string
  readonly config?: Readonly<Record<string, unknown>>
  /** The name of the ClusterTemplate that the file follows: only its editable parts differ. */
  readonly template?: string
  /** Changes with the keys and passwords of the file, which are in a Secret. */
  readonly revision?: string
  /** `Automatic`: plans of the file are applied at once. Default: `Manual`. */
  readonly approval?: 'Automatic' | 'Manual'
}

/** A way for users to the API server of the cluster that does not lead through the management server. */
export interface AuthorizedEndpoint {
  readonly enabled: boolean
  /** A name with an optional port, such as a load balancer's: kubeconfigs have it instead of the addresses. */
  readonly fqdn?: string
  /** PEM; empty: the public authorities. */
  readonly certificateAuthority?: string
  /** Names or IP addresses of API servers, with an optional port (default: 6443). */
  readonly addresses?: readonly string[]
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
    /** The id of the replica of the server that it is connected to. */
    readonly replica?: string
    readonly connectedAt?: string
    readonly disconnectedAt?: string
  }
  /** Only of built clusters. */
  readonly build?: BuildStatus
}

export interface BuildStatus {
  /** The key that machines must admit. */
  readonly sshPublicKey?: string
  /** The digest of the last file that was applied completely. */
  readonly applied?: string
  readonly appliedAt?: string
  /** The Operation that runs, waits or is next. */
  readonly operation?: string
  /** The keys of machines at first sight. Another key stops the work. */
  readonly hostKeys?: readonly { readonly host: string; readonly type: string; readonly fingerprint: string }[]
}

/** The agent of the cluster is connected. */
export const CONNECTED = 'Connected'
/** The API server of the cluster answers. */
export const READY = 'Ready'
/** The roles of the server exist in the cluster. */
export const ROLES_APPLIED = 'RolesApplied'

/** The cluster knows the API tokens of its authorized endpoint. Absent: it never had one. */
export const TOKENS_APPLIED = 'TokensApplied'

/** The processes of a cluster on this machine run. */
export const UP_RUNNING = 'Running'
/** The cluster had its first projects, Default and System. Their owners may have removed them since. */
export const PROJECTS_CREATED = 'ProjectsCreated'
/** An Operation of a built cluster waits for approval. */
export const PENDING = 'Pending'
/** The cluster was built at least once. */
export const PROVISIONED = 'Provisioned'
/** The current cluster file is applied. */
export const UPDATED = 'Updated'
/** The work failed and is tried again later. */
export const WAITING = 'Waiting'

/** The name of the Cluster that is the management cluster. */
export const LOCAL_CLUSTER = 'local'

const HOST_AND_PORT = '^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$'

const AUTHORIZED_ENDPOINT = record(
  {
    enabled: BOOLEAN,
    fqdn: { type: 'string', pattern: HOST_AND_PORT, maxLength: 260 },
    certificateAuthority: { type: 'string', maxLength: 65_536 },
    addresses: list({ type: 'string', pattern: HOST_AND_PORT, maxLength: 260 }, 20),
  },
  ['enabled'],
)

const MAX_UP_NODES = 1000

const UP = record(
  {
    runtime: immutable(oneOf('simulated', 'containerd')),
    nodes: { ...INTEGER, minimum: 0, maximum: MAX_UP_NODES },
    forkOf: immutable(NAME),
    running: BOOLEAN,
  },
  ['runtime', 'nodes'],
)
const BUILD = {
  ...record({
    file: { type: 'string', maxLength: 524_288 },
    config: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    template: TEXT,
    revision: TEXT,
    approval: oneOf('Automatic', 'Manual'),
  }),
  'x-kubernetes-validations': [
    { rule: 'has(self.file) != has(self.config)', message: 'exactly one of file and config must be set' },
  ],
}

const BUILD_STATUS = record({
  sshPublicKey: TEXT,
  applied: TEXT,
  appliedAt: TIME,
  operation: TEXT,
  hostKeys: list(record({ host: TEXT, type: TEXT, fingerprint: TEXT })),
})

export const CLUSTER: ManagementKind<Cluster> = defineManagementKind<Cluster>({
  kind: 'Cluster',
  plural: 'clusters',
  description: 'A Kubernetes cluster that the management server knows.',
  spec: {
    ...record(
      {
        displayName: NAME,
        description: TEXT,
        source: immutable(oneOf('local', 'imported', 'up', 'built')),
        agent: immutable(oneOf('hyperkube', 'remotedialer')),
        up: UP,
        build: BUILD,
        authorizedEndpoint: AUTHORIZED_ENDPOINT,
      },
      ['displayName', 'source'],
    ),
    'x-kubernetes-validations': [
      { rule: 'has(self.agent) == has(oldSelf.agent)', message: 'agent is immutable' },
      { rule: "!has(self.agent) || self.source == 'imported'", message: 'only imported clusters have an agent' },
      {
        rule: "self.source != 'local' || !has(self.authorizedEndpoint)",
        message: 'the cluster of the server itself has no authorized endpoint',
      },
      {
        rule: "(self.source == 'up') == has(self.up)",
        message: 'clusters with source up, and only they, have settings in up',
      },
      {
        rule: "(self.source == 'built') == has(self.build)",
        message: 'built clusters, and only they, have a cluster file in build',
      },
    ],
  },
  status: record({
    conditions: CONDITIONS,
    uid: TEXT,
    version: TEXT,
    nodes: record({ total: INTEGER, ready: INTEGER }),
    capacity: QUANTITIES,
    allocatable: QUANTITIES,
    agent: record({ version: TEXT, address: TEXT, replica: TEXT, connectedAt: TIME, disconnectedAt: TIME }),
    build: BUILD_STATUS,
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
