/** Saves, restores and lists etcd snapshots over all machines of a cluster. */
import { access } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'

import { ProgramError } from '#lib/program.ts'

import { snapshotArguments } from '../components/etcd-plane.ts'
import type { DesiredCluster, DesiredHost, DesiredUpload } from '../desired.ts'
import { FOLDERS, hostPath } from '../host-paths.ts'
import { digestOf } from '../machines/uploads.ts'
import { completeBundle } from '../pki/bundle.ts'
import { hostsOf } from '../plan/planning.ts'
import { planRestore, planStrays, type RestoreSource, snapshotFiles } from '../plan/snapshots.ts'
import { type ClusterState, decodeState } from '../state/state.ts'
import { uploadProgram, type ConvergeOptions, applyChecked, planFor } from './converge.ts'
import type { Change, SessionOptions } from './session-options.ts'
import { openSession, type Session } from './session.ts'

interface SnapshotRow {
  readonly name: string
  readonly revision?: number
  readonly sizeBytes?: number
  readonly problem?: string
  /** The snapshots in the bucket. */
  readonly isCopy?: boolean
}

/** The snapshots on a machine of the etcd plane, listed by its program. */
export function snapshotCommand({ cluster }: Session, desired: DesiredCluster): (host: DesiredHost) => string[] {
  return (host) => {
    const node = cluster.nodes.find(({ hostname_override: name }) => name === host.name)
    const program = desired.hosts.find(({ name }) => name === host.name)?.ending['containerd']?.[0]
    if (node === undefined || program === undefined) throw new ProgramError(`There is no machine "${host.name}"`)
    return [program, ...snapshotArguments(cluster, node)]
  }
}

/** Unreachable machines are omitted. */
export async function listOn(
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

export async function restoreSnapshot(
  options: SessionOptions,
  { name, usesLocalState }: { readonly name: string; readonly usesLocalState: boolean },
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<void> {
  const { say, clock, env, flags } = options
  const bringing: ConvergeOptions = { say, isDebug: flags.debug || flags.trace, clock, signal }
  const looking = await openSession(options, closing, signal)
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
      : await openSession({ ...options, change: asSaved(found.state, looking.before === undefined) }, closing, signal)
  const tool = await findTool(env, options.flags['etcd-binary'], session, wanted)
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
  env: Readonly<Record<string, string | undefined>>,
  etcd: string,
  { cluster, connections }: Session,
  desired: DesiredCluster,
): Promise<RestoreSource['tool']> {
  const folders = [...(etcd === '' ? [] : [dirname(etcd)]), ...(env['PATH'] ?? '').split(delimiter)]
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
