/** The session of a `hyperkube build` command: cluster file, state file, machines and API. */
import { readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { containerdPaths } from '#containerd/paths.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { ProgramError } from '#lib/program.ts'

import type { ClusterApi } from '../apply/cluster-api.ts'
import type { Connections } from '../apply/connections.ts'
import { type ClusterFile, type ClusterNode, nodesOf } from '../cluster.ts'
import { builderHome, type NodeRuntime, toDesired } from '../components/desired-cluster.ts'
import type { DesiredCluster } from '../desired.ts'
import { formatFault, readClusterFile } from '../file/cluster-file.ts'
import { dialProblem } from '../machines/sockets.ts'
import { makePayload } from '../payload.ts'
import type { Bundle } from '../pki/bundle.ts'
import { readCustomBundle } from '../pki/custom.ts'
import { adminKubeconfig } from '../pki/files.ts'
import { nodesThatLeave } from '../state/leaving-nodes.ts'
import { type Stage, stagesAfter } from '../state/stages.ts'
import { type ClusterState, decodeState, encodeState, type FullState, stateFileOf } from '../state/state.ts'
import { readCertificateFolder } from './certificate-folder.ts'
import { openApi } from './open-api.ts'
import { ownFiles } from './operator-files.ts'
import type { SessionOptions } from './session-options.ts'
import { openConnections } from './ssh.ts'
import { thisMachine } from './this-machine.ts'

export interface Session {
  readonly cluster: ClusterFile
  readonly files: SessionFiles
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

export interface SessionFiles {
  readonly config: string
  readonly state: string
  readonly kubeconfig: string
  readonly knownHosts: string
  /** The folder with signed certificates and signing requests. */
  readonly certificates: string
}

/** RKE's file names, beside the cluster file. */
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

/** Throws ProgramError with all problems of the file. */
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
    throw new ProgramError(
      `"${path}" is not a valid cluster file:\n${faults.map((fault) => formatFault(path, fault)).join('\n')}`,
    )
  return cluster
}

function configPath({ flags, env, cwd }: Pick<SessionOptions, 'flags' | 'env' | 'cwd'>): string {
  return resolve(cwd, flags.config || env['RKE_CONFIG'] || 'cluster.yml')
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

async function readDesired(files: SessionFiles, options: SessionOptions): Promise<DesiredSession> {
  const { env, clock, random, change } = options
  const cluster = await readCluster(files.config, options)
  const passphrase = env['HYPERKUBE_STATE_PASSPHRASE']
  const text = await readFile(files.state, 'utf8').catch(() => undefined)
  const stored: FullState = text === undefined ? {} : decodeState(text, passphrase)
  const { desiredState, currentState: before, adopted = {}, stages: left = [], restoring } = stored
  const custom = await customBundle(cluster, files, options)
  const bundle = { ...(desiredState?.certificatesBundle ?? adopted), ...custom }
  const current = { bundle, encryption: desiredState?.encryptionConfig ?? '', built: before?.encryptionConfig }
  return {
    cluster,
    stages: stagesAfter({ cluster, current, left, tools: { clock, random } }, change),
    before,
    leaving: nodesThatLeave(cluster, stored),
    restoring,
    encode: (state) => sameOr(text, state, passphrase, random),
  }
}

/** The certificates from an external authority, with `--custom-certs`. */
async function customBundle(
  cluster: ClusterFile,
  files: SessionFiles,
  { flags, cwd }: SessionOptions,
): Promise<Bundle | undefined> {
  if (flags['custom-certs'] !== true) return undefined
  const folder = flags['cert-dir'] ? resolve(cwd, flags['cert-dir']) : files.certificates
  const { bundle, faults } = readCustomBundle(cluster, await readCertificateFolder(folder))
  if (faults.length > 0) throw new ProgramError(`"${folder}" is incomplete:\n  ${faults.join('\n  ')}`)
  return bundle
}

export async function openSession(
  options: SessionOptions,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Session> {
  const files = sessionFiles(configPath(options))
  const wanted = await readDesired(files, options)
  const { cluster, stages, before, leaving } = wanted
  const nodes = [...cluster.nodes, ...leaving.filter((node) => !isNamed(cluster, node))]
  const targets = { nodes, knownHosts: files.knownHosts }
  const connections = await openMachines(cluster, { ...options, ...targets }, closing, signal)
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
      const known = await findPrograms(nodes, connections)
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
  /** The state that records this stage as built. */
  textOf(stage: Stage): string
}

function stateRecords({ cluster, stages, before, leaving, encode }: DesiredSession, file: string): StateRecords {
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

/** API servers read an encryption configuration if there is one. It may outlive the setting that created it. */
function encrypting(cluster: ClusterFile, { encryptionConfig }: Stage): ClusterFile {
  const api = cluster.services['kube-api']
  const secrets_encryption_config = { ...api.secrets_encryption_config, enabled: encryptionConfig !== '' }
  return { ...cluster, services: { ...cluster.services, 'kube-api': { ...api, secrets_encryption_config } } }
}

const DIAL_MS = 2000

/** The first control plane that accepts connections, or the first. */
async function answering(planes: readonly ClusterNode[], { clock }: SessionOptions): Promise<string> {
  const attempts = planes.map(async ({ address }) => ({
    address,
    problem: await dialProblem({ host: address, port: 6443, timeoutMs: DIAL_MS }, clock),
  }))
  const found = await Promise.all(attempts)
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
