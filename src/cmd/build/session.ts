/** What every command of `hyperkube build` works with: the file, what was built before, the machines and the cluster. */
import { access, readFile } from 'node:fs/promises'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
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
import { encryptionConfig } from '#provision/encryption.ts'
import { digestOf } from '#provision/machines/uploads.ts'
import { makePayload } from '#provision/payload.ts'
import { completeBundle } from '#provision/pki/bundle.ts'
import { adminKubeconfig } from '#provision/pki/files.ts'
import { type ClusterState, decodeState, encodeState, type FullState, stateFileOf } from '#provision/state.ts'

import type { BuildFlags } from './flags.ts'
import { runKubectl } from './kubectl-runner.ts'
import { openConnections } from './ssh.ts'

export interface SessionOptions extends Omit<ProgramContext, 'path' | 'args'> {
  readonly flags: BuildFlags
  readonly say: (text: string) => void
}

export interface Session {
  readonly cluster: ClusterFile
  readonly files: SessionFiles
  /** What was built last. */
  readonly before: ClusterState | undefined
  readonly connections: Connections
  readonly api: ClusterApi
  /** What machines are to be, as far as is known of them. */
  desired(): Promise<DesiredCluster>
  /** Writes down that this is wanted; or, once it has become so, that this is what there is. */
  saveState(isBuilt: boolean): Promise<void>
  saveKubeconfig(): Promise<void>
}

export interface SessionFiles {
  readonly config: string
  readonly state: string
  readonly kubeconfig: string
  readonly knownHosts: string
}

/** By RKE's names, beside the file itself. */
function sessionFiles(config: string): SessionFiles {
  return {
    config,
    state: stateFileOf(config),
    kubeconfig: join(dirname(config), `kube_config_${basename(config)}`),
    knownHosts: join(dirname(config), `${basename(config).replace(/\.[^.]*$/, '')}.known_hosts`),
  }
}

/** Throws ProgramError with all that is wrong with the file. */
async function readCluster(
  path: string,
  { readFile: read, stderr }: Pick<SessionOptions, 'readFile' | 'stderr'>,
): Promise<ClusterFile> {
  const text = await read(path).catch((cause: NodeJS.ErrnoException) => {
    throw new ProgramError(`Cannot read "${path}": ${cause.message}`, { cause })
  })
  const { cluster, faults, notices } = readClusterFile(text)
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
  readonly state: ClusterState
  readonly before: ClusterState | undefined
  readonly encode: (state: FullState) => string
}

async function readWanted(files: SessionFiles, options: SessionOptions): Promise<Wanted> {
  const { env, clock, random } = options
  const cluster = await readCluster(files.config, options)
  const passphrase = env['HYPERKUBE_STATE_PASSPHRASE']
  const stored = await readFile(files.state, 'utf8').catch(() => undefined)
  const { desiredState, currentState: before }: FullState = stored === undefined ? {} : decodeState(stored, passphrase)
  const { bundle } = completeBundle(cluster, desiredState?.certificatesBundle ?? {}, { clock, random })
  const encryption = encryptionConfig(cluster, desiredState?.encryptionConfig ?? '', random)
  return {
    cluster,
    state: { rkeConfig: cluster, certificatesBundle: bundle, encryptionConfig: encryption },
    before,
    encode: (state) => sameOr(stored, state, passphrase, random),
  }
}

export async function openSession(
  options: SessionOptions,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Session> {
  const files = sessionFiles(configPath(options))
  const { cluster, state, before, encode } = await readWanted(files, options)
  const { certificatesBundle: bundle, encryptionConfig: encryption } = state
  const stateText = encode({ desiredState: state, currentState: state })
  const connections = await openMachines(cluster, { ...options, knownHosts: files.knownHosts }, closing, signal)
  const etcd = await findEtcd(options.flags['etcd-binary'], options.env)
  const includes = await readIncludes(cluster, options)
  return {
    cluster,
    files,
    before,
    connections,
    api: openApi(options, cluster, files.kubeconfig, closing),
    async desired() {
      const known = await lookAround(cluster, connections)
      return toDesired(cluster, {
        bundle,
        encryption,
        state: stateText,
        program: (node) => known.get(node.hostname_override)?.program ?? `${builderHome(cluster)}/programs/unknown`,
        runtime: nodeRuntime,
        ...(etcd !== undefined && { etcd }),
        includes,
      })
    },
    saveState: (isBuilt) =>
      writeFileAtomically(
        files.state,
        isBuilt ? stateText : encode({ desiredState: state, ...(before && { currentState: before }) }),
        { mode: 0o600 },
      ),
    saveKubeconfig() {
      const [first] = nodesOf(cluster, 'controlplane')
      const text = adminKubeconfig(cluster, bundle, first?.address ?? '')
      return writeFileAtomically(files.kubeconfig, text, { mode: 0o600 })
    },
  }
}

function openMachines(
  cluster: ClusterFile,
  { flags, env, cwd, say, knownHosts }: SessionOptions & Pick<SessionFiles, 'knownHosts'>,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Connections> {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const cache = join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? '/tmp', '.cache'), 'hyperkube', 'build')
  const bundled = env['HYPERKUBE_BUNDLE']
  const payloads = new Map<string, ReturnType<typeof makePayload>>()
  const ssh = {
    cluster,
    nodes: cluster.nodes,
    home: builderHome(cluster),
    knownHostsFile: knownHosts,
    usesAgent: flags['ssh-agent-auth'],
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
  cluster: ClusterFile,
  connections: Connections,
): Promise<Map<string, { readonly program: string }>> {
  const found = new Map<string, { readonly program: string }>()
  const look = async ({ hostname_override: name }: ClusterNode): Promise<void> => {
    found.set(name, { program: await connections.program(name) })
  }
  await Promise.allSettled(cluster.nodes.map(look))
  return found
}

async function findEtcd(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ source: string; sha256: string } | undefined> {
  const places = path === '' ? (env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'etcd')) : [path]
  for (const source of places) {
    const isThere = await access(source).then(
      () => true,
      () => false,
    )
    if (isThere) return { source, sha256: (await digestOf(source)) ?? '' }
  }
  if (path !== '') throw new ProgramError(`There is no etcd at "${path}"`)
  return undefined
}

async function readIncludes(cluster: ClusterFile, options: SessionOptions): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const name of cluster.addons_include) {
    if (/^https?:/.test(name)) {
      const answer = await fetch(name)
      if (!answer.ok) throw new ProgramError(`addons_include: ${name} answers ${answer.status}`)
      texts.set(name, await answer.text())
    } else {
      texts.set(name, await options.readFile(name))
    }
  }
  return texts
}

function openApi(
  options: SessionOptions,
  cluster: ClusterFile,
  kubeconfig: string,
  closing: AsyncDisposableStack,
): ClusterApi {
  const { clock, env, cwd } = options
  const { node_drain_input: drain } = cluster.upgrade_strategy
  let client: ReturnType<typeof connect> | undefined
  const kubectl = (args: readonly string[], signal: AbortSignal, input = ''): Promise<void> =>
    runKubectl(options, { kubeconfig, args, input }, signal)
  return clusterApi({
    async client() {
      client ??= connect({ kubeconfig, userAgent: userAgent('hyperkube-build'), clock, env, cwd })
      const connected = await client.catch((error: unknown) => {
        client = undefined
        throw error
      })
      closing.defer(() => connected.close())
      return connected.client
    },
    evict: (node, signal) =>
      kubectl(
        [
          'drain',
          node,
          `--force=${drain.force}`,
          `--ignore-daemonsets=${drain.ignore_daemonsets}`,
          `--delete-emptydir-data=${drain.delete_local_data}`,
          `--grace-period=${drain.grace_period}`,
          `--timeout=${drain.timeout}s`,
        ],
        signal,
      ),
    change: (verb, manifest, signal) =>
      kubectl(verb === 'apply' ? ['apply', '-f', '-'] : ['delete', '--ignore-not-found', '-f', '-'], signal, manifest),
  })
}
