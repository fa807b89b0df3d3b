/** Saves, restores and lists etcd snapshots over all machines of a cluster. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'

import { ProgramError } from '#lib/program.ts'

import { snapshotArguments } from '../components/etcd-plane.ts'
import type { DesiredCluster, DesiredHost, DesiredUpload } from '../desired.ts'
import { FOLDERS, hostPath } from '../host-paths.ts'
import { digestOf } from '../machines/uploads.ts'
import { completeBundle } from '../pki/bundle.ts'
import { hostsOf } from '../plan/planning.ts'
import { planRestore, planSave, planStrays, type RestoreSource, snapshotFiles } from '../plan/snapshots.ts'
import { type ClusterState, decodeState, encodeState } from '../state/state.ts'
import { uploadProgram, type ConvergeOptions, applyChecked, planFor } from './converge.ts'
import type { Change } from './session-options.ts'
import type { Session } from './session.ts'

export interface SnapshotRow {
  readonly name: string
  readonly revision?: number
  readonly sizeBytes?: number
  readonly problem?: string
  /** The snapshots in the bucket. */
  readonly isCopy?: boolean
}

/** The name is user input and part of a path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Throws ProgramError if a snapshot cannot have this name. */
export function checkSnapshotName(name: string): void {
  if (!NAME.test(name))
    throw new ProgramError(`"${name}" cannot be the name of a snapshot; use letters, digits, ".", "_" and "-"`)
}

/** Throws ProgramError for an external etcd. */
function checkEtcd({ cluster }: Session): void {
  if (cluster.services.etcd.external_urls.length > 0)
    throw new ProgramError(
      'The cluster uses an external etcd (services.etcd.external_urls): take snapshots of it there',
    )
}

/** The session must be one of a built cluster. */
export async function saveSnapshot(session: Session, name: string, bringing: ConvergeOptions): Promise<void> {
  const { before } = session
  if (before === undefined) throw new ProgramError('There is no cluster yet')
  checkEtcd(session)
  await uploadProgram(session, bringing.say)
  const desired = await session.desired(session.stage)
  const state = encodeState({ desiredState: before, currentState: before })
  const command = snapshotCommand(session, desired)
  await applyChecked(session, planSave(desired, name, { command, state }), bringing)
}

/** The snapshots by machine. Unreachable machines are omitted. */
export async function listSnapshots(
  session: Session,
  signal: AbortSignal,
): Promise<{ readonly host: string; readonly snapshots: readonly SnapshotRow[] }[]> {
  checkEtcd(session)
  return listOn(session, await session.desired(session.stage), signal)
}

/** The command of a machine of the etcd plane that manages its snapshots. */
function snapshotCommand({ cluster }: Session, desired: DesiredCluster): (host: DesiredHost) => string[] {
  return (host) => {
    const node = cluster.nodes.find(({ hostname_override: name }) => name === host.name)
    const program = desired.hosts.find(({ name }) => name === host.name)?.ending['containerd']?.[0]
    if (node === undefined || program === undefined) throw new ProgramError(`There is no machine "${host.name}"`)
    return [program, ...snapshotArguments(cluster, node)]
  }
}

async function listOn(
  session: Session,
  desired: DesiredCluster,
  signal: AbortSignal,
): Promise<{ readonly host: string; readonly snapshots: readonly SnapshotRow[] }[]> {
  const command = snapshotCommand(session, desired)
  const lists = hostsOf(desired, 'etcd').map(async (host) => {
    const machine = await session.connections.machine(host.name)
    const { stdout } = await machine.run({ command: [...command(host), '--list'], timeoutMs: LIST_MS }, signal)
    return { host: host.name, snapshots: JSON.parse(stdout) as SnapshotRow[] }
  })
  return (await Promise.allSettled(lists)).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

const LIST_MS = 300_000

export interface RestoreOptions {
  readonly name: string
  /** The encryption key of the local state, instead of the one beside the snapshot. */
  readonly usesLocalState: boolean
  /** Opens a session, with other stages of certificates and keys if `change` is given. */
  readonly open: (change?: Change) => Promise<Session>
  /** The folders of this machine where etcd's tools may be. */
  readonly toolFolders: readonly string[]
}

export async function restoreSnapshot(
  { name, usesLocalState, open, toolFolders }: RestoreOptions,
  bringing: ConvergeOptions,
): Promise<void> {
  const { say, clock } = bringing
  const looking = await open()
  if (looking.stages.length > 1)
    throw new ProgramError(
      'A rotation of certificates or keys is in progress: finish it with "up" before you restore a snapshot',
    )
  await uploadProgram(looking, say)
  const wanted = asNew(await looking.desired(looking.stage))
  const { faults } = await planFor(looking, wanted, NO_CHECKS, clock)
  if (faults.length > 0) throw new ProgramError(`Nothing was changed:\n  ${faults.join('\n  ')}`)
  const folder = hostPath(looking.cluster, FOLDERS.snapshots)
  const found = await findSnapshot(looking, wanted, { folder, name })
  const session =
    usesLocalState || found.state === undefined
      ? looking
      : await open(asSaved(found.state, looking.before === undefined))
  const tool = await findTool(toolFolders, session, wanted)
  const desired = asNew(await session.desired(session.stage))
  await session.begin(session.stage, name)
  await session.saveKubeconfig(session.stage)
  await applyChecked(
    session,
    planRestore(desired, { name, folder, from: found.from, files: found.files, tool }),
    bringing,
  )
  await applyChecked(session, await planFor(session, desired, NO_CHECKS, clock), bringing)
  const nodes = await session.api.nodes()
  const names = new Set(desired.hosts.map((host) => host.name))
  await applyChecked(session, planStrays([...nodes.keys()].filter((node) => !names.has(node))), bringing)
  await session.finish(session.leaving)
}

/** The machines of the file become the members, whatever the members were before. */
function asNew(desired: DesiredCluster): DesiredCluster {
  return { ...desired, built: undefined, leaving: [] }
}

const NO_CHECKS = { checksPorts: false, workersOnly: false, keepsPods: true }

/**
 * Secrets keep their stored encryption. Certificates come from the snapshot only if there are no newer ones, for
 * example if the local state was lost.
 */
function asSaved({ certificatesBundle, encryptionConfig }: ClusterState, isLost: boolean): Change {
  return (cluster, { bundle }, tools) => [
    {
      certificatesBundle: completeBundle(cluster, isLost ? certificatesBundle : bundle, tools).bundle,
      encryptionConfig,
    },
  ]
}

/** The first complete snapshot, with the state file beside it. */
async function findSnapshot(
  session: Session,
  desired: DesiredCluster,
  { folder, name }: { readonly folder: string; readonly name: string },
): Promise<Pick<RestoreSource, 'from' | 'files'> & { readonly state?: ClusterState }> {
  const paths = snapshotFiles(folder, name)
  const listed = await listOn(session, desired, AbortSignal.timeout(LIST_MS))
  const isWhole = (each: SnapshotRow): boolean => each.name === name && each.problem === undefined
  // A snapshot on the machine is not downloaded.
  const sources = [false, true].flatMap((isCopy) =>
    listed
      .filter(({ snapshots }) => snapshots.some((each) => isWhole(each) && (each.isCopy ?? false) === isCopy))
      .map(({ host }) => ({ host, isCopy })),
  )
  for (const { host, isCopy } of sources) {
    if (isCopy) await fetchTo(session, desired, host, name)
    const machine = await session.connections.machine(host)
    const { files } = await machine.look({ files: Object.values(paths), services: [] })
    const { content } = await machine.read({ path: paths.state })
    const state = content === undefined ? undefined : decodeState(content.toString()).currentState
    return {
      from: host,
      files: Object.entries(files).flatMap(([path, file]) =>
        file === undefined ? [] : [{ path, sha256: file.digest, mode: 0o600 }],
      ),
      ...(state !== undefined && { state }),
    }
  }
  throw new ProgramError(
    `No machine of the etcd plane has a complete snapshot "${name}"; "etcd snapshot-list" shows them`,
  )
}

async function fetchTo(session: Session, desired: DesiredCluster, name: string, snapshot: string): Promise<void> {
  const host = hostsOf(desired, 'etcd').find((each) => each.name === name)
  if (host === undefined) throw new ProgramError(`There is no machine "${name}"`)
  const command = [...snapshotCommand(session, desired)(host), `--fetch=${snapshot}`]
  const machine = await session.connections.machine(name)
  const { code, stderr } = await machine.run({ command, timeoutMs: FETCH_MS })
  if (code !== 0) throw new ProgramError(`${name} cannot download snapshot "${snapshot}": ${stderr.trim()}`)
}

const FETCH_MS = 3_600_000
const TOOLS = ['etcdutl', 'etcdctl']

/** The operator's etcd tools if they are uploaded; otherwise those of the machine. */
async function findTool(
  folders: readonly string[],
  { cluster, connections }: Session,
  desired: DesiredCluster,
): Promise<RestoreSource['tool']> {
  for (const source of TOOLS.flatMap((tool) => folders.map((folder) => join(folder, tool)))) {
    if (!(await isThere(source))) continue
    const path = hostPath(cluster, '/opt/hyperkube/etcd/restore')
    const upload: DesiredUpload = { source, path, mode: 0o755, sha256: (await digestOf(source)) ?? '' }
    return { path, upload }
  }
  const hosts = hostsOf(desired, 'etcd')
  for (const path of TOOLS.map((tool) => `/usr/bin/${tool}`)) {
    const seen = hosts.map(async ({ name }) => (await connections.machine(name)).look({ files: [path], services: [] }))
    if ((await Promise.all(seen)).every(({ files }) => files[path] !== undefined)) return { path }
  }
  throw new ProgramError(
    'Neither this machine nor the machines of the etcd plane have etcdutl or etcdctl, which restore snapshots',
  )
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
