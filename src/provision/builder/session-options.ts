/** The options of a session of the builder: the cluster file, and everything outside the cluster that it reads and writes. */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { ClusterApi } from '../apply/cluster-api.ts'
import type { Connections } from '../apply/connections.ts'
import type { ClusterFile, ClusterNode } from '../cluster.ts'
import type { DesiredInputs } from '../components/desired-cluster.ts'
import type { Bundle, PkiTools } from '../pki/bundle.ts'
import type { ApiAddress } from '../pki/files.ts'
import type { CurrentMaterial, Stage } from '../state/stages.ts'

export type RunKubectl = (
  command: { readonly args: readonly string[]; readonly input: string },
  signal: AbortSignal,
) => Promise<void>

export interface SessionOptions {
  readonly cluster: ClusterFile
  readonly state: StateStore
  /** Opens connections to the machines. */
  readonly openMachines: OpenMachines
  /** Opens the API of the cluster. */
  readonly openApi: OpenApi
  /** Finds the address of an API server that responds, or the likeliest one. */
  readonly findApi: (planes: readonly ClusterNode[]) => Promise<ApiAddress>
  /** Stores the kubeconfig of the administrator, which `openApi` uses. */
  readonly writeKubeconfig: (text: string) => Promise<void>
  /** Files that machines need. */
  readonly own: OwnFiles
  /** Certificates from an external authority. */
  readonly custom?: Bundle
  /** The stages of certificates and keys; by default those that the file requires. */
  readonly change?: Change
  readonly clock: Clock
  readonly random: Random
}

/** Keeps the text of the state, which has private keys. */
export interface StateStore {
  /** Undefined: there is none yet. */
  read(): Promise<string | undefined>
  /** Resolves when the text is durable. */
  write(text: string): Promise<void>
  /** Encrypts the text. */
  readonly passphrase?: string
}

export interface MachineTargets {
  readonly cluster: ClusterFile
  /** The machines of this file and of the last one. */
  readonly nodes: readonly ClusterNode[]
  /** The builder's folder on machines. */
  readonly home: string
}

export type OpenMachines = (
  targets: MachineTargets,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
) => Promise<Connections>

export interface OpenedApi {
  readonly api: ClusterApi
  /** Connects anew at the next request, because the kubeconfig has changed. */
  reopen(): void
}

export type OpenApi = (cluster: ClusterFile, closing: AsyncDisposableStack) => OpenedApi

export type OwnFiles = Pick<DesiredInputs, 'etcd' | 'includes' | 'archives'>

export type Change = (cluster: ClusterFile, current: CurrentMaterial, tools: PkiTools) => Stage[]
