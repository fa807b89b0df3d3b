/** Plans how etcd snapshots are saved and restored. Pure. */
import type { DesiredCluster, DesiredHost, DesiredUpload } from '../desired.ts'
import { hostsOf } from './planning.ts'
import { MACHINES_AT_ONCE, type Plan, type Step, type Track, type Wave } from './step.ts'

/** The files of a snapshot by its name. */
export function snapshotFiles(folder: string, name: string): { database: string; description: string; state: string } {
  const database = `${folder}/${name}.snapshot`
  return { database, description: `${database}.json`, state: `${folder}/${name}.rkestate` }
}

const SAVE_MS = 600_000
const RESTORE_MS = 600_000

/** One success suffices, because all snapshots are equal. */
export function planSave(
  desired: DesiredCluster,
  name: string,
  { command, state }: { readonly command: (host: DesiredHost) => readonly string[]; readonly state: string },
): Plan {
  const hosts = hostsOf(desired, 'etcd')
  const tracks = hosts.map((host): Track => [
    {
      host: host.name,
      describe: `save snapshot ${name}`,
      action: {
        type: 'run',
        ask: {
          command: [...command(host), `--name=${name}`, '--with-state'],
          content: Buffer.from(state),
          timeoutMs: SAVE_MS,
        },
      },
    },
  ])
  return {
    waves: [{ name: 'snapshot', width: MACHINES_AT_ONCE, tolerates: Math.max(0, hosts.length - 1), tracks }],
    faults: [],
    notes: [],
  }
}

export interface RestoreSource {
  readonly name: string
  readonly folder: string
  /** The machine whose copy is used. */
  readonly from: string
  /** The digests of its files, by path. */
  readonly files: readonly Omit<DesiredUpload, 'source'>[]
  /** The restore tool: a file to upload, or its path on machines. */
  readonly tool: { readonly path: string; readonly upload?: DesiredUpload }
}

/**
 * All members get the same snapshot; then clients of etcd stop, then etcd, and then the data is replaced. Nodes stop as
 * well, without their pods, because their caches are newer than the snapshot. Afterwards `up` starts the missing
 * services. The plan can be repeated after any interruption.
 */
export function planRestore(desired: DesiredCluster, restoring: RestoreSource): Plan {
  const members = hostsOf(desired, 'etcd')
  const others = members.filter(({ name }) => name !== restoring.from)
  const wave = (name: string, tracks: readonly Track[]): Wave => ({
    name,
    width: MACHINES_AT_ONCE,
    tolerates: 0,
    tracks: tracks.filter((track) => track.length > 0),
  })
  const { upload } = restoring.tool
  const { from, files } = restoring
  const waves = [
    wave(
      'snapshot',
      others.map(({ name: host }) =>
        files.map((file): Step => ({ host, describe: `copy ${file.path}`, action: { type: 'copy', from, file } })),
      ),
    ),
    wave(
      'program',
      upload === undefined
        ? []
        : members.map(({ name: host }): Track => [
            { host, describe: `send ${upload.path}`, action: { type: 'upload', upload } },
          ]),
    ),
    wave(
      'stop',
      desired.hosts.map((host) => stopSteps(host, (service) => service !== desired.etcd.service)),
    ),
    wave(
      'stop etcd',
      members.map((host) => stopSteps(host, (service) => service === desired.etcd.service)),
    ),
    wave(
      'restore',
      members.map((host) => restoreSteps(desired, host, restoring)),
    ),
  ]
  return { waves: waves.filter(({ tracks }) => tracks.length > 0), faults: [], notes: [] }
}

/** containerd and the local API proxy keep running for pods. */
const GOES_ON = new Set(['containerd', 'api-proxy'])

function stopSteps({ name: host, services }: DesiredHost, isOf: (service: string) => boolean): Track {
  return services
    .map(({ spec }) => spec.name)
    .filter((service) => isOf(service) && !GOES_ON.has(service))
    .toReversed()
    .map((name): Step => ({ host, describe: `stop ${name}`, action: { type: 'retire', name } }))
}

/** Restored to a temporary name first, so that etcd never finds partial data. */
function restoreSteps(desired: DesiredCluster, host: DesiredHost, { name, folder, tool }: RestoreSource): Track {
  const { dataDir, memberName, peerUrl } = desired.etcd
  const fresh = `${dataDir}-restored`
  const members = hostsOf(desired, 'etcd').map((member) => `${memberName(member)}=${peerUrl(member)}`)
  const step = (describe: string, action: Step['action']): Step => ({ host: host.name, describe, action })
  const restore = [
    tool.path,
    'snapshot',
    'restore',
    snapshotFiles(folder, name).database,
    `--name=${memberName(host)}`,
    `--initial-cluster=${members.join(',')}`,
    // A new cluster token: members that were not restored cannot connect.
    `--initial-cluster-token=${name}`,
    `--initial-advertise-peer-urls=${peerUrl(host)}`,
    `--data-dir=${fresh}`,
  ]
  return [
    step('claim a folder', { type: 'claim', paths: [fresh] }),
    step('clear an earlier attempt', { type: 'remove', paths: [fresh] }),
    step(`restore ${name}`, {
      type: 'run',
      ask: { command: restore, env: { ETCDCTL_API: '3' }, timeoutMs: RESTORE_MS },
    }),
    step('remove the old data', { type: 'remove', paths: [dataDir] }),
    step('move the restored data into place', {
      type: 'run',
      ask: { command: ['mv', '-T', fresh, dataDir], timeoutMs: RESTORE_MS },
    }),
  ]
}

/** Nodes in the snapshot that the file lacks: their machines are not in this cluster. */
export function planStrays(names: readonly string[]): Plan {
  const tracks = names.map((node): Track => [
    { host: node, describe: 'delete the node', action: { type: 'delete-node', node } },
  ])
  return {
    waves: tracks.length === 0 ? [] : [{ name: 'strays', width: MACHINES_AT_ONCE, tolerates: 0, tracks }],
    faults: [],
    notes: [],
  }
}
