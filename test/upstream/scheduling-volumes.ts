/** Generates random volumes for the clusters of `scheduling-cases.ts`: claims of every sort, and matching volumes. */
import type { Node, Volume } from '#apis/core/v1.ts'
import { PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { CSIDrivers, CSINodes, CSIStorageCapacities, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'

import { type Draw, HOST, type Loose, NAMESPACES, ZONE } from './draw.ts'

/** An object that is there before pods come. */
export type Given = readonly [kind: Kind, object: object]

const SORTS = [
  'bound',
  'bound',
  'bound',
  'bound, zoned',
  'bound, zoned',
  'bound, one pod',
  'bound, one pod',
  'bound, of old',
  'bound, of old',
  'of old',
  'static',
  'static',
  'dynamic',
  'dynamic',
  'capacity',
  'capacity',
  'immediate',
  'lost',
  'missing',
] as const

type ClaimSort = (typeof SORTS)[number]

export interface Claim {
  readonly namespace: string
  readonly name: string
  readonly sort: ClaimSort
}

/** The provisioner that the test simulates; it creates no volumes of class `immediate`. */
export const PROVISIONER = 'made.example.com'
const DRIVER = 'csi.example.com'
/** Does what a plugin of old did, whose volumes it knows by these names. */
const HEIR = 'pd.csi.storage.gke.io'
const DISKS = ['red', 'blue', 'green', 'grey']
const SIZES = ['1Gi', '2Gi', '5Gi', '10Gi']

interface Topology {
  readonly nodes: readonly Loose<Node>[]
  readonly zones: number
}

export function volumesOf(draw: Draw, topology: Topology): { readonly given: Given[]; readonly claims: Claim[] } {
  const claims: Claim[] = []
  const given: Given[] = [...classes(draw, topology), ...nodeGivens(draw, topology), ...pools(draw, topology)]
  for (let at = 0; at < 20; at++) {
    const claim = { namespace: draw.of(NAMESPACES), name: `claim-${at}`, sort: draw.of(SORTS) }
    claims.push(claim)
    given.push(...claimGivens(draw, claim, topology))
  }
  const free = Array.from({ length: draw.below(10) }, (_, at): Given => {
    const own = { storageClassName: 'static', ...affinityOf(draw, topology) }
    return [PersistentVolumes, volumeOf(draw, `free-${at}`, own)]
  })
  return { given: [...given, ...free], claims }
}

function classes(draw: Draw, { zones }: Topology): Given[] {
  const late = { volumeBindingMode: 'WaitForFirstConsumer' }
  const topology = { matchLabelExpressions: [{ key: ZONE, values: [`zone-${draw.below(zones)}`] }] }
  return [
    [StorageClasses, { metadata: { name: 'static' }, provisioner: 'kubernetes.io/no-provisioner', ...late }],
    [
      StorageClasses,
      {
        metadata: { name: 'dynamic' },
        provisioner: PROVISIONER,
        ...late,
        ...draw.maybe(0.4, () => ({ allowedTopologies: [topology] })),
      },
    ],
    [StorageClasses, { metadata: { name: 'capacity' }, provisioner: DRIVER, ...late }],
    [StorageClasses, { metadata: { name: 'immediate' }, provisioner: DRIVER }],
    [StorageClasses, { metadata: { name: 'of-old' }, provisioner: 'kubernetes.io/gce-pd', ...late }],
    [CSIDrivers, { metadata: { name: DRIVER }, spec: { storageCapacity: true } }],
  ]
}

/** Few volumes can be attached to a node. */
function nodeGivens(draw: Draw, { nodes }: Topology): Given[] {
  return nodes.flatMap(({ metadata }, at): Given[] => {
    const name = metadata?.name ?? ''
    const count = draw.of([0, 1, 2, 5])
    const drivers = [
      { name: DRIVER, nodeID: name, ...draw.maybe(0.8, () => ({ allocatable: { count } })) },
      { name: HEIR, nodeID: name, allocatable: { count: draw.of([0, 1, 2]) } },
    ]
    const attached = {
      metadata: { name: `attached-${at}` },
      spec: { attacher: DRIVER, nodeName: name, source: { persistentVolumeName: `volume-claim-${draw.below(20)}` } },
    }
    return [
      ...(draw.chance(0.8) ? [[CSINodes, { metadata: { name }, spec: { drivers } }] as Given] : []),
      ...(draw.chance(0.1) ? [[VolumeAttachments, attached] as Given] : []),
    ]
  })
}

function pools(draw: Draw, { zones }: Topology): Given[] {
  return Array.from({ length: zones }, (_, at): Given => {
    const metadata = { namespace: 'one', name: `pool-${at}` }
    const pool = {
      metadata,
      storageClassName: 'capacity',
      capacity: draw.of(['0', '2Gi', '8Gi', '100Gi']),
      ...draw.maybe(0.9, () => ({ nodeTopology: { matchLabels: { [ZONE]: `zone-${at}` } } })),
      ...draw.maybe(0.3, () => ({ maximumVolumeSize: '3Gi' })),
    }
    return [CSIStorageCapacities, pool]
  })
}

function claimGivens(draw: Draw, { namespace, name, sort }: Claim, topology: Topology): Given[] {
  if (sort === 'missing') return []
  const accessModes = [sort === 'bound, one pod' ? 'ReadWriteOncePod' : 'ReadWriteOnce']
  const resources = { requests: { storage: draw.of(SIZES) } }
  const claim = (more: object, annotations: object = {}): Given => [
    PersistentVolumeClaims,
    { metadata: { namespace, name, annotations }, spec: { accessModes, resources, ...more } },
  ]
  const volumeName = `volume-${name}`
  if (sort === 'lost')
    return [claim({ storageClassName: 'static', volumeName }, { 'pv.kubernetes.io/bind-completed': 'yes' })]
  if (!sort.startsWith('bound')) return [claim({ storageClassName: sort.replace(' ', '-') })]
  const labels = { [ZONE]: draw.of(['zone-0', 'zone-1', 'zone-0__zone-1']) }
  const own = {
    accessModes,
    storageClassName: 'static',
    claimRef: { namespace, name },
    capacity: resources.requests,
    ...(sort === 'bound' && affinityOf(draw, topology)),
    ...draw.maybe(0.7, () => ({ hostPath: null, csi: { driver: DRIVER, volumeHandle: name } })),
    ...(sort === 'bound, of old' && { hostPath: null, csi: null, gcePersistentDisk: { pdName: draw.of(DISKS) } }),
  }
  const volume = volumeOf(draw, volumeName, own)
  return [
    [PersistentVolumes, sort === 'bound, zoned' ? { ...volume, metadata: { name: volumeName, labels } } : volume],
    claim({ storageClassName: 'static', volumeName }),
  ]
}

function volumeOf(draw: Draw, name: string, own: object): { metadata: object; spec: object } {
  const accessModes = ['ReadWriteOnce']
  const capacity = { storage: draw.of(SIZES) }
  const hostPath = { path: '/nowhere' }
  return {
    metadata: { name },
    spec: { accessModes, capacity, hostPath, persistentVolumeReclaimPolicy: 'Retain', ...own },
  }
}

function affinityOf(draw: Draw, { nodes, zones }: Topology): object {
  const names = nodes.map(({ metadata }) => metadata?.name ?? '')
  const expression = draw.of([
    { key: HOST, operator: 'In', values: [draw.of(names), draw.of(names)] },
    { key: ZONE, operator: 'In', values: [`zone-${draw.below(zones)}`] },
    { key: 'disk', operator: 'Exists' },
  ])
  return draw.maybe(0.8, () => ({
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
  }))
}

/** Of a pod: some of the claims of its namespace, and now and then a disk that only one may write to, and nodes take few of. */
export function podVolumes(draw: Draw, claims: readonly Claim[], namespace: string): Loose<Volume>[] {
  const own = claims.filter((claim) => claim.namespace === namespace)
  const chosen = own.length === 0 ? [] : Array.from({ length: 1 + draw.below(2) }, () => draw.of(own).name)
  const disk = { pdName: draw.of(DISKS), ...draw.maybe(0.5, () => ({ readOnly: true })) }
  return [
    ...[...new Set(chosen)].map((claimName, at) => ({ name: `v${at}`, persistentVolumeClaim: { claimName } })),
    ...(draw.chance(0.2) ? [{ name: 'disk', gcePersistentDisk: disk }] : []),
  ]
}
