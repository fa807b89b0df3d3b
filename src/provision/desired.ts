/** The types of the desired state of machines in a built cluster: files, uploads, services and Nodes. */
import type { ServiceSpec } from './machine.ts'

/** The roles of a machine, with RKE's names. */
export type Plane = 'etcd' | 'controlplane' | 'worker'

export interface DesiredFile {
  readonly path: string
  readonly mode: number
  readonly content: Buffer
  /** Written if missing, and never changed. */
  readonly once?: boolean
}

/** A large file, which is uploaded in parts. */
export interface DesiredUpload {
  /** The path on the operator's machine. */
  readonly source: string
  readonly path: string
  readonly mode: number
  readonly sha256: string
}

/** The health check of a service: a URL on its machine, requested there with local certificates. */
export interface Health {
  readonly url: string
  readonly authority?: string
  readonly certificate?: string
  readonly key?: string
  /** The certificate is not verified: it is the machine's own, and self-signed. */
  readonly insecure?: boolean
}

export interface DesiredService {
  readonly plane: Plane
  readonly spec: ServiceSpec
  readonly health?: Health
  /** A restart does not affect pods: the node is not drained. */
  readonly isQuiet?: boolean
}

export interface DesiredTaint {
  readonly key: string
  readonly value: string
  readonly effect: string
}

/** The desired labels, annotations and taints of the Node. Other keys are never changed. */
export interface DesiredNode {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly DesiredTaint[]
  /** Taint and label keys of roles, which are removed with the role. */
  readonly roleTaints: readonly string[]
  readonly roleLabels: readonly string[]
}

export interface DesiredHost {
  /** The name of the Node and of the machine in messages. */
  readonly name: string
  /** The address for other machines. */
  readonly address: string
  readonly roles: readonly Plane[]
  readonly files: readonly DesiredFile[]
  readonly uploads: readonly DesiredUpload[]
  /** Paths that its services create: removed with the cluster. */
  readonly claims: readonly string[]
  /** In start order. */
  readonly services: readonly DesiredService[]
  readonly ending: CleanupCommands
  readonly node: DesiredNode
}

/** By service: the command that removes its kernel and containerd state when the service is removed. */
export type CleanupCommands = Readonly<Record<string, readonly string[]>>

/** A machine of the last file that the current one lacks. */
export type LeavingHost = Pick<DesiredHost, 'name' | 'address' | 'roles' | 'ending'>

export interface DesiredCluster {
  readonly hosts: readonly DesiredHost[]
  readonly leaving: readonly LeavingHost[]
  /** The roles of machines when the cluster was last complete, by name; undefined if it never was. */
  readonly built: ReadonlyMap<string, readonly Plane[]> | undefined
  readonly etcd: {
    /** The name of the service. */
    readonly service: string
    readonly dataDir: string
    /** The health check of a member, on a machine with the role. */
    readonly health: (host: DesiredHost) => Health
    /** The file with the initial members. */
    readonly joiningFile: string
    readonly memberName: (host: DesiredHost) => string
    readonly peerUrl: (host: Pick<DesiredHost, 'address'>) => string
  }
  /** The builder's folder on machines. */
  readonly home: string
  readonly upgrade: {
    readonly workers: number
    readonly controlPlanes: number
    readonly drains: boolean
  }
  /** Objects to apply before nodes join, and after. */
  readonly access: readonly Addon[]
  readonly addons: readonly Addon[]
  /** The desired content of `full-cluster-state`. */
  readonly state: string
  readonly needs: Preflight
}

/** Addon objects, which are deleted when the addon is removed. */
export interface Addon {
  /** The name of the addon, and of the ConfigMap in kube-system that records it. */
  readonly name: string
  /** YAML. */
  readonly manifest: string
  /** A failure is reported but does not stop the run, because it is a user addon. */
  readonly isOptional?: boolean
}

/** The preconditions of a machine. */
export interface Preflight {
  readonly programs: readonly string[]
  readonly freeBytes: number
  readonly memoryBytes: number
  readonly skewMs: number
  readonly allowsSwap: boolean
}

/** The file with the last desired state of the machine. */
export function manifestFile(home: string): string {
  return `${home}/manifest.json`
}
