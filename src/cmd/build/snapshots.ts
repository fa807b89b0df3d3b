/** What the commands about snapshots do with machines. */
import { access } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'

import { ProgramError } from '#lib/program.ts'
import type { DesiredCluster, DesiredHost, DesiredUpload } from '#provision/desired.ts'
import { snapshotArguments } from '#provision/etcd-plane.ts'
import { FOLDERS, hostPath } from '#provision/host-paths.ts'
import { digestOf } from '#provision/machines/uploads.ts'
import { completeBundle } from '#provision/pki/bundle.ts'
import { hostsOf } from '#provision/planning.ts'
import { planRestore, planStrays, type Restoring, snapshotFiles } from '#provision/snapshots.ts'
import { type ClusterState, decodeState } from '#provision/state.ts'

import { bringProgram, type Bringing, carryOut, planFor } from './bring.ts'
import { type Change, openSession, type Session, type SessionOptions } from './session.ts'

interface Listed {
  readonly name: string
  readonly revision?: number
  readonly sizeBytes?: number
  readonly problem?: string
  /** In the bucket. */
  readonly isCopy?: boolean
}

/** Of a machine of the etcd plane, by its own program. */
export function snapshotCommand({ cluster }: Session, desired: DesiredCluster): (host: DesiredHost) => string[] {
  return (host) => {
    const node = cluster.nodes.find(({ hostname_override: name }) => name === host.name)
    const program = desired.hosts.find(({ name }) => name === host.name)?.ending['containerd']?.[0]
    if (node === undefined || program === undefined) throw new ProgramError(`There is no machine "${host.name}"`)
    return [program, ...snapshotArguments(cluster, node)]
  }
}

/** Machines that cannot be asked are left out. */
export async function listOn(
  session: Session,
  desired: DesiredCluster,
  signal: AbortSignal,
): Promise<{ readonly host: string; readonly snapshots: readonly Listed[] }[]> {
  const command = snapshotCommand(session, desired)
  const asked = hostsOf(desired, 'etcd').map(async (host) => {
    const machine = await session.connections.machine(host.name)
    const { stdout } = await machine.run({ command: [...command(host), '--list'], timeoutMs: LIST_MS }, signal)
    return { host: host.name, snapshots: JSON.parse(stdout) as Listed[] }
  })
  return (await Promise.allSettled(asked)).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

const LIST_MS = 300_000

export async function restoreSnapshot(
  options: SessionOptions,
  { name, usesLocalState }: { readonly name: string; readonly usesLocalState: boolean },
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<void> {
  const { say, clock, env, flags } = options
  const bringing: Bringing = { say, isDebug: flags.debug || flags.trace, clock, signal }
  const looking = await openSession(options, closing, signal)
  if (looking.stages.length > 1)
    throw new ProgramError(
      'Certificates or keys are being changed: finish that with "up" before a snapshot is restored',
    )
  await bringProgram(looking, say)
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
  await carryOut(session, planRestore(desired, { name, folder, from: found.from, files: found.files, tool }), bringing)
  await carryOut(session, await planFor(session, desired, NO_CHECKS, clock), bringing)
  const nodes = await session.api.nodes()
  const names = new Set(desired.hosts.map((host) => host.name))
  await carryOut(session, planStrays([...nodes.keys()].filter((node) => !names.has(node))), bringing)
  await session.finish(session.leaving)
}

/** Whoever is in the file becomes a member, whoever was one before. */
function asNew(desired: DesiredCluster): DesiredCluster {
  return { ...desired, built: undefined, leaving: [] }
}

const NO_CHECKS = { checksPorts: false, workersOnly: false, keepsPods: true }

/** Secrets as they were stored. Certificates only where there are no newer ones: who has lost the state here gets it back. */
function asSaved({ certificatesBundle, encryptionConfig }: ClusterState, isLost: boolean): Change {
  return (cluster, { bundle }, tools) => [
    {
      certificatesBundle: completeBundle(cluster, isLost ? certificatesBundle : bundle, tools).bundle,
      encryptionConfig,
    },
  ]
}

/** The first whole one, with the state that lies beside it. */
async function findSnapshot(
  session: Session,
  desired: DesiredCluster,
  { folder, name }: { readonly folder: string; readonly name: string },
): Promise<Pick<Restoring, 'from' | 'files'> & { readonly state?: ClusterState }> {
  const paths = snapshotFiles(folder, name)
  const listed = await listOn(session, desired, AbortSignal.timeout(LIST_MS))
  const isWhole = (each: Listed): boolean => each.name === name && each.problem === undefined
  // What is on a machine is not fetched.
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
  throw new ProgramError(`No machine of the etcd plane has a whole snapshot "${name}"; "etcd snapshot-list" shows them`)
}

async function fetchTo(session: Session, desired: DesiredCluster, name: string, snapshot: string): Promise<void> {
  const host = hostsOf(desired, 'etcd').find((each) => each.name === name)
  if (host === undefined) throw new ProgramError(`There is no machine "${name}"`)
  const command = [...snapshotCommand(session, desired)(host), `--fetch=${snapshot}`]
  const machine = await session.connections.machine(name)
  const { code, stderr } = await machine.run({ command, timeoutMs: FETCH_MS })
  if (code !== 0) throw new ProgramError(`${name} cannot fetch snapshot "${snapshot}": ${stderr.trim()}`)
}

const FETCH_MS = 3_600_000
const TOOLS = ['etcdutl', 'etcdctl']

/** The operator's, beside the etcd that travels; else that of the machines. */
async function findTool(
  env: Readonly<Record<string, string | undefined>>,
  etcd: string,
  { cluster, connections }: Session,
  desired: DesiredCluster,
): Promise<Restoring['tool']> {
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
    'Neither this machine nor those of the etcd plane have etcdutl or etcdctl, which restore snapshots',
  )
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
