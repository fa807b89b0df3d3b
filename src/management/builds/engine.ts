/** Executes the work of an Operation on machines, with the engine of `hyperkube build`. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'

import { Namespaces } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { connect } from '#client/connection/connect.ts'
import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { ProgramError } from '#lib/program.ts'
import type { Random } from '#lib/random.ts'
import { userAgent } from '#model/version.ts'
import { type Connect, Connections } from '#provision/apply/connections.ts'
import { answeringPlane } from '#provision/builder/find-api.ts'
import { apiOfKubeconfig } from '#provision/builder/open-api.ts'
import { ownFiles } from '#provision/builder/operator-files.ts'
import { payloads } from '#provision/builder/payloads.ts'
import type { Change, OpenApi, OpenMachines, OwnFiles, RunKubectl } from '#provision/builder/session-options.ts'
import { openSession, type Session } from '#provision/builder/session.ts'
import { openSsh } from '#provision/builder/ssh.ts'
import type { ClusterFile, ClusterNode } from '#provision/cluster.ts'
import { builderHome } from '#provision/components/desired-cluster.ts'
import type { Payload } from '#provision/payload.ts'
import type { ApiAddress } from '#provision/pki/files.ts'

import { changeSecrets, type BuildSecrets, stateStore } from './secrets.ts'

export interface BuildSurroundings {
  readonly clock: Clock
  readonly random: Random
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder for the programs of machines and, during an Operation, for keys. */
  readonly folder: string
  /** etcd for machines of the etcd plane; empty: the one in the local PATH, or the machines' own. */
  readonly etcdBinary: string
  readonly kubectl: RunKubectl
  /** Other ways to machines than SSH. */
  readonly tunnels?: MachineTunnelWays
  /** For tests: replaces machines, API and files. */
  readonly site?: BuildSite
}

/** Ways to the machines of a cluster that have registered with an agent. */
export type MachineTunnelWays = (
  cluster: string,
  places: { readonly home: string; readonly payload: (kind: string) => Promise<Payload> },
  signal: AbortSignal,
) => TunnelWays

interface TunnelWays {
  has(name: string): boolean
  readonly connect: Connect
  /** A port of 127.0.0.1 that leads to the API server of one of these control planes. */
  apiPort(names: readonly string[], closing: AsyncDisposableStack): Promise<number>
}

export interface BuildSite {
  readonly openMachines: OpenMachines
  readonly openApi: OpenApi
  readonly own: OwnFiles
  /** The uid of kube-system. */
  readonly uid: () => Promise<string>
}

/** The cluster that is worked on. */
export interface BuildTarget {
  readonly client: ApiClient
  readonly name: string
  readonly cluster: ClusterFile
  /** The text of the file, with passwords. */
  readonly file: string
  /** The Operation, which is recorded with the state. */
  readonly operation: string
  readonly secrets: BuildSecrets
  /** Other certificates and keys than those that the file requires. */
  readonly change: Change | undefined
  readonly say: (text: string) => void
}

/** A session, and what belongs to it in this process. */
export interface OpenBuild {
  readonly session: Session
  /** Opens another session with other certificates and keys, over separate connections. */
  reopen(change?: Change): Promise<Session>
  readonly toolFolders: readonly string[]
  /** The uid of the cluster's namespace kube-system. */
  uid(): Promise<string>
}

/** Everything is put on `closing`, the files with keys too. */
export async function openBuild(
  target: BuildTarget,
  around: BuildSurroundings,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OpenBuild> {
  const folder = await makeFolder(around, closing)
  const files = { knownHosts: join(folder, 'known_hosts'), kubeconfig: join(folder, 'kubeconfig') }
  await writeFile(files.knownHosts, target.secrets.knownHosts, { mode: 0o600 })
  const { clock, random, env, site } = around
  // Another cluster may have had the same address.
  const kubectl: RunKubectl = ({ args, input }, stop) =>
    around.kubectl({ args: [`--cache-dir=${join(folder, 'kubectl')}`, ...args], input }, stop)
  // Programs keep caches below the home directory.
  const own = { ...env, HOME: folder }
  const access = { clock, env: own, cwd: folder, kubectl, kubeconfig: files.kubeconfig }
  const payload = payloads(join(around.folder, 'programs'), env)
  const ways = around.tunnels?.(target.name, { home: builderHome(target.cluster), payload }, signal)
  const options = {
    cluster: target.cluster,
    state: stateStore(target.client, target.name, target),
    openMachines: site?.openMachines ?? machinesOf(target, around, { folder, ...files, payload, ways }),
    openApi:
      site?.openApi ?? ((cluster: ClusterFile, stack: AsyncDisposableStack) => apiOfKubeconfig(access, cluster, stack)),
    findApi: site === undefined ? apiFinder(ways, clock, closing) : firstPlane,
    writeKubeconfig: (text: string) => writeFileAtomically(files.kubeconfig, text, { mode: 0o600 }),
    own: site?.own ?? (await filesFor(target.cluster, around)),
    clock,
    random,
  }
  const open = (other: Change | undefined): Promise<Session> =>
    openSession({ ...options, ...(other !== undefined && { change: other }) }, closing, signal)
  return {
    session: await open(target.change),
    reopen: open,
    toolFolders: toolFolders(around),
    uid: site?.uid ?? (() => uidOf(access, signal)),
  }
}

async function makeFolder({ folder }: BuildSurroundings, closing: AsyncDisposableStack): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const made = await mkdtemp(join(folder, OWN_WORK))
  closing.defer(() => rm(made, { recursive: true, force: true }))
  return made
}

const WORK = 'work-'
const OWN_WORK = `${WORK}${process.pid}-`

/** A process that was killed leaves files with keys. Only one process at a time has the folder. */
export async function clearWork(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  const left = names.filter((name) => name.startsWith(WORK) && !name.startsWith(OWN_WORK))
  await Promise.all(left.map((name) => rm(join(folder, name), { recursive: true, force: true })))
}

interface MachineAccess {
  readonly folder: string
  readonly knownHosts: string
  readonly payload: (kind: string) => Promise<Payload>
  readonly ways: TunnelWays | undefined
}

function machinesOf(
  { client, name, secrets, say }: BuildTarget,
  { env }: BuildSurroundings,
  { folder, knownHosts, payload, ways }: MachineAccess,
): OpenMachines {
  const settings = {
    knownHosts: {
      file: knownHosts,
      changed: async () => changeSecrets(client, name, { knownHosts: await readFile(knownHosts, 'utf8') }),
    },
    key: secrets.sshKey,
    usesAgent: false,
    isHere: false,
    traces: false,
    payload,
    // The agent and the passphrase in the environment of the server are not for clusters.
    env: { ...env, SSH_AUTH_SOCK: undefined, HYPERKUBE_SSH_PASSPHRASE: undefined },
    cwd: folder,
    temporary: folder,
    say,
  }
  return async (targets, closing, signal) => {
    const bySsh = await openSsh(settings, targets, closing, signal)
    const connections = new Connections((machine, installs) =>
      ways?.has(machine) === true ? ways.connect(machine, installs) : bySsh(machine, installs),
    )
    closing.use(connections)
    return connections
  }
}

type FindApi = (planes: readonly ClusterNode[]) => Promise<ApiAddress>

/** Through a tunnel if a control plane has one, because the server may have no way into its network. */
function apiFinder(ways: TunnelWays | undefined, clock: Clock, closing: AsyncDisposableStack): FindApi {
  const direct = answeringPlane(clock)
  let opening: Promise<number> | undefined
  return async (planes) => {
    const names = planes.map(({ hostname_override: name }) => name).filter((name) => ways?.has(name) === true)
    if (ways === undefined || names.length === 0) return direct(planes)
    opening ??= ways.apiPort(names, closing)
    // Certificates of API servers have this address.
    return { host: '127.0.0.1', port: await opening }
  }
}

const firstPlane: FindApi = ([plane]) => Promise.resolve({ host: plane?.address ?? '' })

function filesFor(cluster: ClusterFile, { env, etcdBinary }: BuildSurroundings): Promise<OwnFiles> {
  const readNothing = (path: string): Promise<string> => Promise.reject(new ProgramError(`"${path}" is not read here`))
  return ownFiles(cluster, '', { env, readFile: readNothing, flags: { 'etcd-binary': etcdBinary } })
}

function toolFolders({ env, etcdBinary }: BuildSurroundings): readonly string[] {
  return [...(etcdBinary === '' ? [] : [dirname(etcdBinary)]), ...(env['PATH'] ?? '').split(delimiter)]
}

async function uidOf(
  access: Pick<Parameters<typeof connect>[0], 'kubeconfig' | 'env' | 'cwd' | 'clock'>,
  signal: AbortSignal,
): Promise<string> {
  await using connected = await connect({ ...access, userAgent: userAgent('hyperkube-server') })
  const { metadata } = await connected.client.get(Namespaces, { name: 'kube-system' }, { signal })
  return metadata.uid ?? ''
}
