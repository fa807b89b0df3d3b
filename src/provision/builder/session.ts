/** The session of a change of a cluster: cluster file, state, machines and API. */
import { containerdPaths } from '#containerd/paths.ts'

import type { ClusterApi } from '../apply/cluster-api.ts'
import type { Connections } from '../apply/connections.ts'
import { type ClusterFile, type ClusterNode, nodesOf } from '../cluster.ts'
import { builderHome, type NodeRuntime, toDesired } from '../components/desired-cluster.ts'
import type { DesiredCluster } from '../desired.ts'
import { adminKubeconfig } from '../pki/files.ts'
import { nodesThatLeave } from '../state/leaving-nodes.ts'
import { type Stage, stagesAfter } from '../state/stages.ts'
import { type ClusterState, decodeState, encodeState, type FullState } from '../state/state.ts'
import type { SessionOptions, StateStore } from './session-options.ts'

export interface Session {
  readonly cluster: ClusterFile
  /** The last built state. */
  readonly before: ClusterState | undefined
  /** Machines to remove: those of earlier files that the current one does not contain. */
  readonly leaving: readonly ClusterNode[]
  /** The name of a snapshot whose restore has not finished. */
  readonly restoring: string | undefined
  readonly connections: Connections
  readonly api: ClusterApi
  /** The stages of the cluster in order; at least one. */
  readonly stages: readonly Stage[]
  /** The first stage. */
  readonly stage: Stage
  /** The desired state of machines, as far as known. */
  desired(stage: Stage): Promise<DesiredCluster>
  /** Records the desired state of this stage before anything changes. */
  begin(stage: Stage, restoring?: string): Promise<void>
  /** Records the last stage as the built state, except for machines that still have to leave. */
  finish(leaving?: readonly ClusterNode[]): Promise<void>
  /** Selects the first control plane that responds; API requests go through it from then on. */
  saveKubeconfig(stage: Stage): Promise<void>
}

/** The file and the state, before any connection. */
interface DesiredSession {
  readonly cluster: ClusterFile
  readonly stages: readonly Stage[]
  readonly before: ClusterState | undefined
  readonly leaving: readonly ClusterNode[]
  readonly restoring: string | undefined
  readonly encode: (state: FullState) => string
}

async function readDesired(options: SessionOptions): Promise<DesiredSession> {
  const { cluster, state, custom, clock, random, change } = options
  const text = await state.read()
  const stored: FullState = text === undefined ? {} : decodeState(text, state.passphrase)
  const { desiredState, currentState: before, adopted = {}, stages: left = [], restoring } = stored
  const bundle = { ...(desiredState?.certificatesBundle ?? adopted), ...custom }
  const current = { bundle, encryption: desiredState?.encryptionConfig ?? '', built: before?.encryptionConfig }
  return {
    cluster,
    stages: stagesAfter({ cluster, current, left, tools: { clock, random } }, change),
    before,
    leaving: nodesThatLeave(cluster, stored),
    restoring,
    encode: (next) => sameOr(text, next, state.passphrase, random),
  }
}

export async function openSession(
  options: SessionOptions,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Session> {
  const wanted = await readDesired(options)
  const { cluster, stages, before, leaving } = wanted
  const nodes = [...cluster.nodes, ...leaving.filter((node) => !isNamed(cluster, node))]
  const connections = await options.openMachines({ cluster, nodes, home: builderHome(cluster) }, closing, signal)
  const opened = options.openApi(cluster, closing)
  const records = stateRecords(wanted, options.state)
  return {
    cluster,
    before,
    leaving,
    restoring: wanted.restoring,
    connections,
    api: opened.api,
    stages,
    stage: stages[0] as Stage,
    async desired(stage) {
      const known = await findPrograms(nodes, connections)
      return toDesired(encrypting(cluster, stage), {
        bundle: stage.certificatesBundle,
        encryption: stage.encryptionConfig,
        state: records.textOf(stage),
        program: (node) => known.get(node.hostname_override)?.program ?? `${builderHome(cluster)}/programs/unknown`,
        runtime: nodeRuntime,
        ...options.own,
        leaving,
        ...(before && { built: before.rkeConfig }),
      })
    },
    begin: (stage, name) => records.begin(stage, name),
    finish: (left) => records.finish(left),
    async saveKubeconfig({ certificatesBundle }) {
      const address = await options.findApi(nodesOf(cluster, 'controlplane'))
      await options.writeKubeconfig(adminKubeconfig(cluster, certificatesBundle, address))
      opened.reopen()
    },
  }
}

interface StateRecords extends Pick<Session, 'begin' | 'finish'> {
  /** The state that records this stage as built. */
  textOf(stage: Stage): string
}

function stateRecords({ cluster, stages, before, leaving, encode }: DesiredSession, store: StateStore): StateRecords {
  const stateOf = ({ certificatesBundle, encryptionConfig }: Stage): ClusterState => ({
    rkeConfig: cluster,
    certificatesBundle,
    encryptionConfig,
  })
  const texts = new Map(
    stages.map((stage) => [stage, encode({ desiredState: stateOf(stage), currentState: stateOf(stage) })]),
  )
  const textOf = (stage: Stage): string => texts.get(stage) ?? ''
  return {
    textOf,
    begin(stage, restoring) {
      const left = stages.slice(stages.indexOf(stage))
      const isAlone = left.length === 1 && stage.after === undefined
      return store.write(
        encode({
          desiredState: stateOf(stage),
          ...(before && { currentState: before }),
          leaving,
          ...(!isAlone && { stages: left }),
          ...(restoring !== undefined && { restoring }),
        }),
      )
    },
    finish(left = []) {
      const last = stages.at(-1) as Stage
      const state = stateOf(last)
      return store.write(
        left.length === 0 ? textOf(last) : encode({ desiredState: state, currentState: state, leaving: left }),
      )
    },
  }
}

function isNamed({ nodes }: ClusterFile, { hostname_override: name }: ClusterNode): boolean {
  return nodes.some((node) => node.hostname_override === name)
}

/** API servers read an encryption configuration if there is one. It may outlive the setting that created it. */
function encrypting(cluster: ClusterFile, { encryptionConfig }: Stage): ClusterFile {
  const api = cluster.services['kube-api']
  const secrets_encryption_config = { ...api.secrets_encryption_config, enabled: encryptionConfig !== '' }
  return { ...cluster, services: { ...cluster.services, 'kube-api': { ...api, secrets_encryption_config } } }
}

/** Encryption is not deterministic, so unchanged contents keep their encrypted form. */
function sameOr(
  stored: string | undefined,
  state: FullState,
  passphrase: string | undefined,
  random: SessionOptions['random'],
): string {
  const plain = encodeState(state)
  if (passphrase === undefined) return plain
  if (stored !== undefined && encodeState(decodeState(stored, passphrase)) === plain) return stored
  return encodeState(state, { passphrase, random })
}

function nodeRuntime(_node: ClusterNode, dataDir: string): NodeRuntime {
  const { socket, cgroupParent, stateFolder } = containerdPaths(dataDir)
  return { dataDir, endpoint: `unix://${socket}`, cgroupParent, stateFolder }
}

/** The path of our program on each machine. Unreachable machines are omitted; the plan reports them. */
async function findPrograms(
  nodes: readonly ClusterNode[],
  connections: Connections,
): Promise<Map<string, { readonly program: string }>> {
  const found = new Map<string, { readonly program: string }>()
  const look = async ({ hostname_override: name }: ClusterNode): Promise<void> => {
    found.set(name, { program: await connections.program(name) })
  }
  await Promise.allSettled(nodes.map(look))
  return found
}
