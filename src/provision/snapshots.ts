/** Snapshots of etcd as plans: one taken on every machine of the plane, one put in the place of all data. Pure. */
import type { DesiredCluster, DesiredHost, DesiredUpload } from './desired.ts'
import { hostsOf } from './planning.ts'
import { MACHINES_AT_ONCE, type Plan, type Step, type Track, type Wave } from './step.ts'

/** What of a snapshot lies in the folder, by its name. */
export function snapshotFiles(folder: string, name: string): { database: string; description: string; state: string } {
  const database = `${folder}/${name}.snapshot`
  return { database, description: `${database}.json`, state: `${folder}/${name}.rkestate` }
}

const SAVE_MS = 600_000
const RESTORE_MS = 600_000

/** It is enough that one succeeds: all would hold the same. */
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

export interface Restoring {
  readonly name: string
  readonly folder: string
  /** The machine whose copy is taken. */
  readonly from: string
  /** Of its files, by path. */
  readonly files: readonly Omit<DesiredUpload, 'source'>[]
  /** What turns a snapshot into data of etcd: as it travels, or by its path on machines. */
  readonly tool: { readonly path: string; readonly upload?: DesiredUpload }
}

/**
 * Everybody gets the same snapshot; then all that speaks to etcd stops, then etcd itself, and only then data are replaced. Nodes stop
 * too, without their pods: what they remember of the cluster is of a time that has not been. What comes after is what `up` does to
 * machines whose services are missing. May be done again from the beginning, whenever it was interrupted.
 */
export function planRestore(desired: DesiredCluster, restoring: Restoring): Plan {
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

/** Pods live in containerd, and reach the API servers by the proxy of their node. */
const GOES_ON = new Set(['containerd', 'api-proxy'])

function stopSteps({ name: host, services }: DesiredHost, isOf: (service: string) => boolean): Track {
  return services
    .map(({ spec }) => spec.name)
    .filter((service) => isOf(service) && !GOES_ON.has(service))
    .toReversed()
    .map((name): Step => ({ host, describe: `stop ${name}`, action: { type: 'retire', name } }))
}

/** Under another name first, so that there is never half of it where etcd looks. */
function restoreSteps(desired: DesiredCluster, host: DesiredHost, { name, folder, tool }: Restoring): Track {
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
    // Another cluster than before: members that did not come along cannot speak to it.
    `--initial-cluster-token=${name}`,
    `--initial-advertise-peer-urls=${peerUrl(host)}`,
    `--data-dir=${fresh}`,
  ]
  return [
    step('claim a folder', { type: 'claim', paths: [fresh] }),
    step('clear what an earlier try has left', { type: 'remove', paths: [fresh] }),
    step(`restore ${name}`, {
      type: 'run',
      ask: { command: restore, env: { ETCDCTL_API: '3' }, timeoutMs: RESTORE_MS },
    }),
    step('remove the data of before', { type: 'remove', paths: [dataDir] }),
    step('put the restored data in their place', {
      type: 'run',
      ask: { command: ['mv', '-T', fresh, dataDir], timeoutMs: RESTORE_MS },
    }),
  ]
}

/** Nodes that the snapshot knows and the file does not: their machines are not in this cluster. */
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
