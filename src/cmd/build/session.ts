/** What every command of `hyperkube build` works with: the file, what was built before, the machines and the cluster. */
import { readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { connect } from '#client/connect.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { userAgent } from '#model/version.ts'
import { clusterApi } from '#provision/cluster-api-client.ts'
import type { ClusterApi } from '#provision/cluster-api.ts'
import { formatFault, readClusterFile } from '#provision/cluster-file.ts'
import { type ClusterFile, type ClusterNode, nodesOf } from '#provision/cluster.ts'
import type { Connections } from '#provision/connections.ts'
import { builderHome, type NodeRuntime, toDesired } from '#provision/desired-cluster.ts'
import type { DesiredCluster } from '#provision/desired.ts'
import { nodesThatLeave } from '#provision/leaving-nodes.ts'
import { dialProblem } from '#provision/machines/sockets.ts'
import { makePayload } from '#provision/payload.ts'
import type { Bundle, PkiTools } from '#provision/pki/bundle.ts'
import { readCustomBundle } from '#provision/pki/custom.ts'
import { adminKubeconfig } from '#provision/pki/files.ts'
import { type Held, type Stage, stagesAfter } from '#provision/stages.ts'
import { type ClusterState, decodeState, encodeState, type FullState, stateFileOf } from '#provision/state.ts'

import { readCertificateFolder } from './certificate-folder.ts'
import type { BuildFlags, CertificateFlags } from './flags.ts'
import { runKubectl } from './kubectl-runner.ts'
import { ownFiles } from './operator-files.ts'
import { openConnections } from './ssh.ts'
import { thisMachine } from './this-machine.ts'

export interface SessionOptions extends Omit<ProgramContext, 'path' | 'args'> {
  readonly flags: BuildFlags & Partial<CertificateFlags>
  readonly say: (text: string) => void
  /** What certificates and keys are to become; what the file wants unless given. */
  readonly change?: Change
}

export type Change = (cluster: ClusterFile, held: Held, tools: PkiTools) => Stage[]

export interface Session {
  readonly cluster: ClusterFile
  readonly files: SessionFiles
  /** What was built last. */
  readonly before: ClusterState | undefined
  /** Machines that leave: those of files before that this one does not name. */
  readonly leaving: readonly ClusterNode[]
  /** Name of a snapshot whose restoring was begun and not ended. */
  readonly restoring: string | undefined
  readonly connections: Connections
  readonly api: ClusterApi
  /** What the cluster is to become, one after the other; at least one. */
  readonly stages: readonly Stage[]
  /** The first of them. */
  readonly stage: Stage
  /** What machines are to be, as far as is known of them. */
  desired(stage: Stage): Promise<DesiredCluster>
  /** Writes down what is wanted from this stage on, before anything is changed. */
  begin(stage: Stage, restoring?: string): Promise<void>
  /** Writes down that the last stage is what there is, but for machines that still have to leave. */
  finish(leaving?: readonly ClusterNode[]): Promise<void>
  /** For whichever control plane answers; the API is asked through it from then on. */
  saveKubeconfig(stage: Stage): Promise<void>
}

export interface SessionFiles {
  readonly config: string
  readonly state: string
  readonly kubeconfig: string
  readonly knownHosts: string
  /** A folder: what others have signed, and requests for it. */
  readonly certificates: string
}

/** By RKE's names, beside the file itself. */
function sessionFiles(config: string): SessionFiles {
  const stem = basename(config).replace(/\.[^.]*$/, '')
  return {
    config,
    state: stateFileOf(config),
    kubeconfig: join(dirname(config), `kube_config_${basename(config)}`),
    knownHosts: join(dirname(config), `${stem}.known_hosts`),
    certificates: join(dirname(config), `${stem}_certs`),
  }
}

/** Throws ProgramError with all that is wrong with the file. */
async function readCluster(
  path: string,
  { readFile: read, stderr, flags }: Pick<SessionOptions, 'readFile' | 'stderr' | 'flags'>,
): Promise<ClusterFile> {
  const text = await read(path).catch((cause: NodeJS.ErrnoException) => {
    if (flags.local && cause.code === 'ENOENT') return ''
    throw new ProgramError(`Cannot read "${path}": ${cause.message}`, { cause })
  })
  const { cluster, faults, notices } = readClusterFile(text, flags.local ? await thisMachine() : undefined)
  for (const notice of notices) stderr.write(`note: ${formatFault(path, notice)}\n`)
  if (cluster === undefined)
    throw new ProgramError(`"${path}" is not a cluster:\n${faults.map((fault) => formatFault(path, fault)).join('\n')}`)
  return cluster
}

function configPath({ flags, env, cwd }: Pick<SessionOptions, 'flags' | 'env' | 'cwd'>): string {
  return resolve(cwd, flags.config || env['RKE_CONFIG'] || 'cluster.yml')
}

/** What the file and the state say, before anybody is asked. */
interface Wanted {
  readonly cluster: ClusterFile
  readonly stages: readonly Stage[]
  readonly before: ClusterState | undefined
  readonly leaving: readonly ClusterNode[]
  readonly restoring: string | undefined
  readonly encode: (state: FullState) => string
}

async function readWanted(files: SessionFiles, options: SessionOptions): Promise<Wanted> {
  const { env, clock, random, change } = options
  const cluster = await readCluster(files.config, options)
  const passphrase = env['HYPERKUBE_STATE_PASSPHRASE']
  const text = await readFile(files.state, 'utf8').catch(() => undefined)
  const stored: FullState = text === undefined ? {} : decodeState(text, passphrase)
  const { desiredState, currentState: before, adopted = {}, stages: left = [], restoring } = stored
  const custom = await customBundle(cluster, files, options)
  const bundle = { ...(desiredState?.certificatesBundle ?? adopted), ...custom }
  const held = { bundle, encryption: desiredState?.encryptionConfig ?? '', built: before?.encryptionConfig }
  return {
    cluster,
    stages: stagesAfter({ cluster, held, left, tools: { clock, random } }, change),
    before,
    leaving: nodesThatLeave(cluster, stored),
    restoring,
    encode: (state) => sameOr(text, state, passphrase, random),
  }
}

/** What the operator has signed by others, with `--custom-certs`. */
async function customBundle(
  cluster: ClusterFile,
  files: SessionFiles,
  { flags, cwd }: SessionOptions,
): Promise<Bundle | undefined> {
  if (flags['custom-certs'] !== true) return undefined
  const folder = flags['cert-dir'] ? resolve(cwd, flags['cert-dir']) : files.certificates
  const { bundle, faults } = readCustomBundle(cluster, await readCertificateFolder(folder))
  if (faults.length > 0) throw new ProgramError(`"${folder}" has not all it needs:\n  ${faults.join('\n  ')}`)
  return bundle
}

export async function openSession(
  options: SessionOptions,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Session> {
  const files = sessionFiles(configPath(options))
  const wanted = await readWanted(files, options)
  const { cluster, stages, before, leaving } = wanted
  const nodes = [...cluster.nodes, ...leaving.filter((node) => !isNamed(cluster, node))]
  const places = { nodes, knownHosts: files.knownHosts }
  const connections = await openMachines(cluster, { ...options, ...places }, closing, signal)
  const own = await ownFiles(cluster, files.config, options)
  const opened = openApi(options, cluster, files.kubeconfig, closing)
  const records = stateRecords(wanted, files.state)
  return {
    cluster,
    files,
    before,
    leaving,
    restoring: wanted.restoring,
    connections,
    api: opened.api,
    stages,
    stage: stages[0] as Stage,
    async desired(stage) {
      const known = await lookAround(nodes, connections)
      return toDesired(encrypting(cluster, stage), {
        bundle: stage.certificatesBundle,
        encryption: stage.encryptionConfig,
        state: records.textOf(stage),
        program: (node) => known.get(node.hostname_override)?.program ?? `${builderHome(cluster)}/programs/unknown`,
        runtime: nodeRuntime,
        ...own,
        leaving,
        ...(before && { built: before.rkeConfig }),
      })
    },
    begin: (stage, name) => records.begin(stage, name),
    finish: (left) => records.finish(left),
    async saveKubeconfig({ certificatesBundle }) {
      const address = await answering(nodesOf(cluster, 'controlplane'), options)
      const text = adminKubeconfig(cluster, certificatesBundle, address)
      await writeFileAtomically(files.kubeconfig, text, { mode: 0o600 })
      opened.reopen()
    },
  }
}

interface StateRecords extends Pick<Session, 'begin' | 'finish'> {
  /** What a cluster remembers that this stage has been brought to. */
  textOf(stage: Stage): string
}

function stateRecords({ cluster, stages, before, leaving, encode }: Wanted, file: string): StateRecords {
  const stateOf = ({ certificatesBundle, encryptionConfig }: Stage): ClusterState => ({
    rkeConfig: cluster,
    certificatesBundle,
    encryptionConfig,
  })
  const texts = new Map(
    stages.map((stage) => [stage, encode({ desiredState: stateOf(stage), currentState: stateOf(stage) })]),
  )
  const write = (text: string): Promise<void> => writeFileAtomically(file, text, { mode: 0o600 })
  const textOf = (stage: Stage): string => texts.get(stage) ?? ''
  return {
    textOf,
    begin(stage, restoring) {
      const left = stages.slice(stages.indexOf(stage))
      const isAlone = left.length === 1 && stage.after === undefined
      return write(
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
      return write(
        left.length === 0 ? textOf(last) : encode({ desiredState: state, currentState: state, leaving: left }),
      )
    },
  }
}

function isNamed({ nodes }: ClusterFile, { hostname_override: name }: ClusterNode): boolean {
  return nodes.some((node) => node.hostname_override === name)
}

/** Whether API servers read a configuration follows from whether there is one: it may have to outlive the wish for it. */
function encrypting(cluster: ClusterFile, { encryptionConfig }: Stage): ClusterFile {
  const api = cluster.services['kube-api']
  const secrets_encryption_config = { ...api.secrets_encryption_config, enabled: encryptionConfig !== '' }
  return { ...cluster, services: { ...cluster.services, 'kube-api': { ...api, secrets_encryption_config } } }
}

const DIAL_MS = 2000

/** The first that accepts connections, or the first. */
async function answering(planes: readonly ClusterNode[], { clock }: SessionOptions): Promise<string> {
  const asked = planes.map(async ({ address }) => ({
    address,
    problem: await dialProblem({ host: address, port: 6443, timeoutMs: DIAL_MS }, clock),
  }))
  const found = await Promise.all(asked)
  return (found.find(({ problem }) => problem === '') ?? found[0])?.address ?? ''
}

function openMachines(
  cluster: ClusterFile,
  {
    flags,
    env,
    cwd,
    say,
    knownHosts,
    nodes,
  }: SessionOptions & { readonly knownHosts: string; readonly nodes: readonly ClusterNode[] },
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Connections> {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const cache = join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? '/tmp', '.cache'), 'hyperkube', 'build')
  const bundled = env['HYPERKUBE_BUNDLE']
  const payloads = new Map<string, ReturnType<typeof makePayload>>()
  const ssh = {
    cluster,
    nodes,
    home: builderHome(cluster),
    knownHostsFile: knownHosts,
    usesAgent: flags['ssh-agent-auth'],
    isHere: flags.local,
    traces: flags.trace,
    payload(kind: string): ReturnType<typeof makePayload> {
      const made =
        payloads.get(kind) ?? makePayload(kind, { root, cache, ...(bundled && { bundle: dirname(bundled) }) })
      payloads.set(kind, made)
      return made
    },
    env,
    cwd,
    say,
    signal,
  }
  return openConnections(ssh, closing)
}

/** Sealing is never the same twice: what says the same is not sealed again. */
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
  const { socket, cgroupParent, stateFolder } = placesOf(dataDir)
  return { dataDir, endpoint: `unix://${socket}`, cgroupParent, stateFolder }
}

/** Where our program is on machines; those that cannot be reached are left out, and told of when they are looked at. */
async function lookAround(
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

function openApi(
  options: SessionOptions,
  cluster: ClusterFile,
  kubeconfig: string,
  closing: AsyncDisposableStack,
): { readonly api: ClusterApi; reopen(): void } {
  const { clock, env, cwd } = options
  let client: ReturnType<typeof connect> | undefined
  const kubectl = (args: readonly string[], signal: AbortSignal, input = ''): Promise<void> =>
    runKubectl(options, { kubeconfig, args, input }, signal)
  const api = clusterApi({
    async client() {
      if (client === undefined) {
        const opening = connect({ kubeconfig, userAgent: userAgent('hyperkube-build'), clock, env, cwd })
        client = opening
        opening.then(
          (connected) => closing.defer(() => connected.close()),
          () => (client = undefined),
        )
      }
      return (await client).client
    },
    evict: (node, mode, signal) => kubectl(['drain', node, ...drainFlags(cluster, mode)], signal),
    change: (verb, manifest, signal) => kubectl(verb === 'apply' ? ['apply', '-f', '-'] : DELETE, signal, manifest),
  })
  return { api, reopen: () => (client = undefined) }
}

/** Of a node that leaves for good everything goes, whoever made it: it would be lost with the machine. */
function drainFlags({ upgrade_strategy }: ClusterFile, mode: 'evict' | 'clear'): string[] {
  const { node_drain_input: drain } = upgrade_strategy
  const isGone = mode === 'clear'
  return [
    `--force=${isGone || drain.force}`,
    `--ignore-daemonsets=${isGone || drain.ignore_daemonsets}`,
    `--delete-emptydir-data=${isGone || drain.delete_local_data}`,
    `--grace-period=${drain.grace_period}`,
    `--timeout=${drain.timeout}s`,
  ]
}

/** With all that was made for it: what was switched off has gone when this ends. */
const DELETE = ['delete', '--ignore-not-found', '--cascade=foreground', '-f', '-']
