/** What machines are to be, as data: what cluster.yml, certificates and flags come to for each of them. */
import type { ServiceSpec } from './machine.ts'

/** What a machine is for, in RKE's words. */
export type Plane = 'etcd' | 'controlplane' | 'worker'

export interface DesiredFile {
  readonly path: string
  readonly mode: number
  readonly content: Buffer
  /** Written when it is missing, and left alone ever after. */
  readonly once?: boolean
}

/** A file that is too large to be held: it is sent in parts. */
export interface DesiredUpload {
  /** On the operator's machine. */
  readonly source: string
  readonly path: string
  readonly mode: number
  readonly sha256: string
}

/** How a service says that it is well: an address of its machine, asked from there, with certificates that lie there. */
export interface Health {
  readonly url: string
  readonly authority?: string
  readonly certificate?: string
  readonly key?: string
  /** Whoever answers is believed: it is this machine, and has made its certificate itself. */
  readonly insecure?: boolean
}

export interface DesiredService {
  readonly plane: Plane
  readonly spec: ServiceSpec
  readonly health?: Health
  /** No pod feels that it starts again: a node is not drained for it. */
  readonly isQuiet?: boolean
}

export interface DesiredTaint {
  readonly key: string
  readonly value: string
  readonly effect: string
}

/** What the Node is to say of itself. Only what is named here is ever changed. */
export interface DesiredNode {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly DesiredTaint[]
  /** Keys of taints and labels that roles bring, which go when the role has gone. */
  readonly roleTaints: readonly string[]
  readonly roleLabels: readonly string[]
}

export interface DesiredHost {
  /** Of the Node, and of the machine in all that is said of it. */
  readonly name: string
  /** Where the other machines reach it. */
  readonly address: string
  readonly roles: readonly Plane[]
  readonly files: readonly DesiredFile[]
  readonly uploads: readonly DesiredUpload[]
  /** What its services will make: gone with the cluster. */
  readonly claims: readonly string[]
  /** In the order in which they start. */
  readonly services: readonly DesiredService[]
  readonly ending: Ending
  readonly node: DesiredNode
}

/** By service: the command that ends what kernel and containerd hold of it, which has no file, once it has gone for good. */
export type Ending = Readonly<Record<string, readonly string[]>>

/** A machine that the last file named and this one does not. */
export type LeavingHost = Pick<DesiredHost, 'name' | 'address' | 'roles' | 'ending'>

export interface DesiredCluster {
  readonly hosts: readonly DesiredHost[]
  readonly leaving: readonly LeavingHost[]
  /** The roles of machines when the cluster was last whole, by name; undefined: it never was. */
  readonly built: ReadonlyMap<string, readonly Plane[]> | undefined
  readonly etcd: {
    /** Its name as a service. */
    readonly service: string
    readonly dataDir: string
    /** By which its member is asked, on a machine that has the role. */
    readonly health: (host: DesiredHost) => Health
    /** Where a machine says which cluster it joins. */
    readonly joiningFile: string
    readonly memberName: (host: DesiredHost) => string
    readonly peerUrl: (host: Pick<DesiredHost, 'address'>) => string
  }
  /** Where the builder keeps its things on machines. */
  readonly home: string
  readonly upgrade: {
    readonly workers: number
    readonly controlPlanes: number
    readonly drains: boolean
  }
  /** What is put into the cluster before nodes join it, and after. */
  readonly access: readonly Addon[]
  readonly addons: readonly Addon[]
  /** What `full-cluster-state` is to hold. */
  readonly state: string
  readonly needs: Preflight
}

/** Objects that are put into the cluster, and taken out again when nobody wants them any more. */
export interface Addon {
  /** Of the ConfigMap in kube-system that remembers it, too. */
  readonly name: string
  /** YAML. */
  readonly manifest: string
  /** One that fails is reported, and is no reason to stop: it is the user's. */
  readonly isOptional?: boolean
}

/** What a machine must have before anything is changed. */
export interface Preflight {
  readonly programs: readonly string[]
  readonly freeBytes: number
  readonly memoryBytes: number
  readonly skewMs: number
  readonly allowsSwap: boolean
}

/** Where the machine remembers what it was last told to be. */
export function manifestFile(home: string): string {
  return `${home}/manifest.json`
}
