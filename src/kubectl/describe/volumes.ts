/** Describes volumes: a table of volume kinds, each with its description and rows. */
import type { PersistentVolumeSpec, Volume } from '#apis/core/v1.ts'
import { quantitySign, parseQuantity } from '#meta/quantity.ts'

import { goShow } from '../templates/go-value.ts'
import { claimRows } from './claim.ts'
import { cells, nested, type NestedRow, type Part, type Row, type Value } from './rows.ts'
import { byKey, listText, shortened } from './sections.ts'

/** A volume source of any kind; the rows read its fields. */
type Source = Readonly<Record<string, unknown>>

type Cell = (source: Source) => Value

interface VolumeKind {
  readonly title: string
  readonly rows?: readonly (readonly [label: string, cell: Cell])[]
  /** The parts after the rows. */
  readonly more?: (source: Source) => Part[]
}

const text =
  (field: string): Cell =>
  (source) =>
    typeof source[field] === 'object' ? goShow(source[field]) : ((source[field] as Value) ?? '')
/** Rows whose labels are the names of their fields. */
const texts = (...labels: readonly string[]): (readonly [label: string, cell: Cell])[] =>
  labels.map((label) => [label, text(`${label.slice(0, 1).toLowerCase()}${label.slice(1)}`)])
const number =
  (field: string): Cell =>
  (source) =>
    (source[field] as number | undefined) ?? 0
const flag =
  (field: string): Cell =>
  (source) =>
    source[field] === true
const list =
  (field: string): Cell =>
  (source) =>
    listText(source[field] as string[] | undefined)
const or =
  (field: string, otherwise: string): Cell =>
  (source) =>
    (source[field] as Value) ?? otherwise
/** A secret reference in Go's form of a pointer. */
const reference =
  (field: string): Cell =>
  (source) => {
    const found = source[field] as { name?: string; namespace?: string } | undefined
    return found === undefined ? 'nil' : `&LocalObjectReference{Name:${found.name ?? ''},}`
  }
const secretReference =
  (field: string): Cell =>
  (source) => {
    const found = source[field] as { name?: string; namespace?: string } | undefined
    if (found === undefined) return 'nil'
    return `&SecretReference{Name:${found.name ?? ''},Namespace:${found.namespace ?? ''},}`
  }
const options: Cell = ({ options: given }) => goShow(given ?? {})

const READ_ONLY = ['ReadOnly', flag('readOnly')] as const
const FS_TYPE = ['FSType', text('fsType')] as const

function disk(title: string, idLabel: string, idField: string): VolumeKind {
  return { title, rows: [[idLabel, text(idField)], FS_TYPE, ['Partition', number('partition')], READ_ONLY] }
}

function sizeLimit({ sizeLimit: limit }: Source): string {
  return typeof limit === 'string' && quantitySign(parseQuantity(limit)) > 0 ? limit : '<unset>'
}

function iscsi(secret: Cell): VolumeKind {
  return {
    title: "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
    rows: [
      ['TargetPortal', text('targetPortal')],
      ['IQN', text('iqn')],
      ['Lun', number('lun')],
      ['ISCSIInterface', text('iscsiInterface')],
      FS_TYPE,
      READ_ONLY,
      ['Portals', list('portals')],
      ['DiscoveryCHAPAuth', flag('chapAuthDiscovery')],
      ['SessionCHAPAuth', flag('chapAuthSession')],
      ['SecretRef', secret],
      ['InitiatorName', or('initiatorName', '<none>')],
    ],
  }
}

function rbd(secret: Cell): VolumeKind {
  return {
    title: "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
    rows: [
      ['CephMonitors', list('monitors')],
      ['RBDImage', text('image')],
      FS_TYPE,
      ['RBDPool', text('pool')],
      ['RadosUser', text('user')],
      ['Keyring', text('keyring')],
      ['SecretRef', secret],
      READ_ONLY,
    ],
  }
}

function cephfs(secret: Cell): VolumeKind {
  return {
    title: "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
    rows: [['Monitors', list('monitors')], ...texts('Path', 'User', 'SecretFile'), ['SecretRef', secret], READ_ONLY],
  }
}

function cinder(secret: Cell): VolumeKind {
  return {
    title: 'Cinder (a Persistent Disk resource in OpenStack)',
    rows: [['VolumeID', text('volumeID')], FS_TYPE, READ_ONLY, ['SecretRef', secret]],
  }
}

function flex(secret: Cell): VolumeKind {
  return {
    title: 'FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)',
    rows: [['Driver', text('driver')], FS_TYPE, ['SecretRef', secret], READ_ONLY, ['Options', options]],
  }
}

const SCALE_IO = 'ScaleIO (a persistent volume backed by a block device in ScaleIO)'
const SCALE_IO_ROWS = [
  ...texts('Gateway', 'System'),
  ['Protection Domain', text('protectionDomain')],
  ['Storage Pool', text('storagePool')],
  ['Storage Mode', text('storageMode')],
  ['VolumeName', text('volumeName')],
] as const
const AZURE_FILE = 'AzureFile (an Azure File Service mount on the host and bind mount to the pod)'
const GLUSTERFS = "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)"
const CSI = 'CSI (a Container Storage Interface (CSI) volume source)'

const secretPart =
  (field: string): Cell =>
  ({ secretRef }) =>
    (secretRef as Record<string, string> | undefined)?.[field] ?? ''

/** Kinds that pods and persistent volumes share. */
const SHARED: Readonly<Record<string, VolumeKind>> = {
  hostPath: {
    title: 'HostPath (bare host directory volume)',
    rows: [
      ['Path', text('path')],
      ['HostPathType', or('type', '<none>')],
    ],
  },
  gcePersistentDisk: disk(
    'GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)',
    'PDName',
    'pdName',
  ),
  awsElasticBlockStore: disk('AWSElasticBlockStore (a Persistent Disk resource in AWS)', 'VolumeID', 'volumeID'),
  nfs: {
    title: 'NFS (an NFS mount that lasts the lifetime of a pod)',
    rows: [...texts('Server', 'Path'), READ_ONLY],
  },
  quobyte: {
    title: "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
    rows: [...texts('Registry', 'Volume'), READ_ONLY],
  },
  vsphereVolume: {
    title: 'vSphereVolume (a Persistent Disk resource in vSphere)',
    rows: [['VolumePath', text('volumePath')], FS_TYPE, ['StoragePolicyName', text('storagePolicyName')]],
  },
  azureDisk: {
    title: 'AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)',
    rows: [
      ...texts('DiskName', 'DiskURI'),
      ['Kind: ', text('kind')],
      FS_TYPE,
      ['CachingMode', text('cachingMode')],
      READ_ONLY,
    ],
  },
  photonPersistentDisk: {
    title: 'PhotonPersistentDisk (a Persistent Disk resource in photon platform)',
    rows: [['PdID', text('pdID')], FS_TYPE],
  },
  portworxVolume: {
    title: 'PortworxVolume (a Portworx Volume resource)',
    rows: [['VolumeID', text('volumeID')]],
  },
  storageos: {
    title: 'StorageOS (a StorageOS Persistent Disk resource)',
    rows: [...texts('VolumeName', 'VolumeNamespace'), FS_TYPE, READ_ONLY],
  },
  fc: {
    title: 'FC (a Fibre Channel disk)',
    rows: [
      ['TargetWWNs', ({ targetWWNs }) => ((targetWWNs as string[] | undefined) ?? []).join(', ')],
      ['LUN', or('lun', '<none>')],
      FS_TYPE,
      READ_ONLY,
    ],
  },
  flocker: {
    title: 'Flocker (a Flocker volume mounted by the Flocker agent)',
    rows: texts('DatasetName', 'DatasetUUID'),
  },
}

const POD_KINDS: Readonly<Record<string, VolumeKind>> = {
  ...SHARED,
  emptyDir: {
    title: "EmptyDir (a temporary directory that shares a pod's lifetime)",
    rows: [
      ['Medium', text('medium')],
      ['SizeLimit', sizeLimit],
    ],
  },
  gitRepo: {
    title: 'GitRepo (a volume that is pulled from git when the pod is created)',
    rows: texts('Repository', 'Revision'),
  },
  secret: {
    title: 'Secret (a volume populated by a Secret)',
    rows: [
      ['SecretName', text('secretName')],
      ['Optional', flag('optional')],
    ],
  },
  configMap: {
    title: 'ConfigMap (a volume populated by a ConfigMap)',
    rows: [
      ['Name', text('name')],
      ['Optional', flag('optional')],
    ],
  },
  iscsi: iscsi(reference('secretRef')),
  glusterfs: { title: GLUSTERFS, rows: [['EndpointsName', text('endpoints')], ['Path', text('path')], READ_ONLY] },
  persistentVolumeClaim: {
    title: 'PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)',
    rows: [['ClaimName', text('claimName')], READ_ONLY],
  },
  ephemeral: {
    title: 'EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)',
    more: ({ volumeClaimTemplate }) =>
      volumeClaimTemplate === undefined ? [] : claimRows(volumeClaimTemplate as never),
  },
  rbd: rbd(reference('secretRef')),
  downwardAPI: { title: 'DownwardAPI (a volume populated by information about the pod)', more: downwardRows },
  cinder: cinder(reference('secretRef')),
  scaleIO: { title: SCALE_IO, rows: [...SCALE_IO_ROWS, FS_TYPE, READ_ONLY] },
  cephfs: cephfs(reference('secretRef')),
  azureFile: {
    title: AZURE_FILE,
    rows: [...texts('SecretName', 'ShareName'), READ_ONLY],
  },
  flexVolume: flex(reference('secretRef')),
  projected: {
    title: 'Projected (a volume that contains injected data from multiple sources)',
    more: projectedRows,
  },
  csi: { title: CSI, rows: [['Driver', text('driver')], FS_TYPE, READ_ONLY], more: attributeRows },
  image: {
    title: 'Image (a container image or OCI artifact)',
    rows: texts('Reference', 'PullPolicy'),
  },
}

const PERSISTENT_KINDS: Readonly<Record<string, VolumeKind>> = {
  ...SHARED,
  iscsi: iscsi(secretReference('secretRef')),
  glusterfs: {
    title: GLUSTERFS,
    rows: [
      ['EndpointsName', text('endpoints')],
      ['EndpointsNamespace', or('endpointsNamespace', '<unset>')],
      ['Path', text('path')],
      READ_ONLY,
    ],
  },
  rbd: rbd(secretReference('secretRef')),
  cinder: cinder(secretReference('secretRef')),
  scaleIO: {
    title: SCALE_IO,
    rows: [
      ...SCALE_IO_ROWS,
      ['SecretName', secretPart('name')],
      ['SecretNamespace', secretPart('namespace')],
      FS_TYPE,
      READ_ONLY,
    ],
  },
  local: {
    title: 'LocalVolume (a persistent volume backed by local storage on a node)',
    rows: [['Path', text('path')]],
  },
  cephfs: cephfs(secretReference('secretRef')),
  azureFile: {
    title: AZURE_FILE,
    rows: [...texts('SecretName', 'SecretNamespace', 'ShareName'), READ_ONLY],
  },
  flexVolume: flex(secretReference('secretRef')),
  csi: {
    title: CSI,
    rows: [['Driver', text('driver')], FS_TYPE, ['VolumeHandle', text('volumeHandle')], READ_ONLY],
    more: attributeRows,
  },
}

interface DownwardItem {
  readonly path: string
  readonly fieldRef?: { readonly fieldPath: string }
  readonly resourceFieldRef?: { readonly resource: string }
}

function downwardRows({ items = [] }: { items?: unknown }): Part[] {
  const lines = (items as DownwardItem[]).flatMap(({ path, fieldRef, resourceFieldRef }) => [
    fieldRef && `${fieldRef.fieldPath} -> ${path}`,
    resourceFieldRef && `${resourceFieldRef.resource} -> ${path}`,
  ])
  return [['Items', lines]]
}

interface ProjectedSource {
  readonly secret?: { readonly name?: string; readonly optional?: boolean }
  readonly configMap?: { readonly name?: string; readonly optional?: boolean }
  readonly downwardAPI?: object
  readonly serviceAccountToken?: { readonly expirationSeconds?: number }
}

function projectedRows({ sources = [] }: { sources?: unknown }): Part[] {
  return (sources as ProjectedSource[]).flatMap(({ secret, configMap, downwardAPI, serviceAccountToken }): Part[] => {
    const named = secret ?? (downwardAPI === undefined ? configMap : undefined)
    if (named !== undefined) {
      const label = secret === undefined ? 'ConfigMapName' : 'SecretName'
      return [
        [label, named.name ?? ''],
        ['Optional', named.optional === true],
      ]
    }
    if (downwardAPI !== undefined) return [['DownwardAPI', true]]
    return [['TokenExpirationSeconds', serviceAccountToken && (serviceAccountToken.expirationSeconds ?? 0)]]
  })
}

const MAX_ATTRIBUTE = 140

function attributeRows({ volumeAttributes }: { volumeAttributes?: unknown }): Part[] {
  const lines = byKey(volumeAttributes as Record<string, string> | undefined).map(([key, value]) =>
    shortened(`${key}=${value}`, MAX_ATTRIBUTE),
  )
  const [first, ...others] = lines
  // Upstream indents every part of the following lines again.
  return [
    ['VolumeAttributes', first === undefined ? '<none>' : `    ${first}`],
    ...others.map((line) => `    \t    ${line}`),
  ]
}

/** A row for each volume of a pod or a template. */
export function volumeRows(volumes: readonly Volume[] = []): NestedRow[] {
  return volumes.map((volume) => [volume.name, sourceRows(volume as unknown as Source, POD_KINDS)])
}

export function persistentSourceRow(spec: PersistentVolumeSpec): Row {
  return ['Source', [nested(...sourceRows(spec as unknown as Source, PERSISTENT_KINDS))]]
}

function sourceRows(holder: Source, kinds: Readonly<Record<string, VolumeKind>>): Part[] {
  const found = Object.entries(kinds).find(([field]) => holder[field] !== undefined && holder[field] !== null)
  if (found === undefined) return [{ verbatim: '  <unknown>\n' }]
  const [field, { title, rows = [], more = () => [] }] = found
  const source = holder[field] as Source
  return [['Type', title], ...rows.map(([label, cell]) => cellPart(label, cell(source))), ...more(source)]
}

/** Upstream writes one label without a colon and one with a trailing space. */
function cellPart(label: string, value: Value): Part {
  return label === 'ISCSIInterface' || label.endsWith(': ') ? cells(label, value) : [label, value]
}
