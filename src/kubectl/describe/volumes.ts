/** Volumes of pods and persistent volumes: one table of kinds, each with what it is and the rows it has. */
import type { PersistentVolumeSpec, Volume } from '#apis/core/v1.ts'
import { quantitySign, parseQuantity } from '#meta/quantity.ts'

import { goShow } from '../templates/go-value.ts'
import { putClaim } from './claim.ts'
import type { Page, Value } from './page.ts'
import { byKey, listText, shortened } from './sections.ts'

/** A source, loosely: which fields it has its rows say. */
type Source = Readonly<Record<string, unknown>>

type Cell = (source: Source) => Value

interface VolumeKind {
  readonly title: string
  readonly rows?: readonly (readonly [label: string, cell: Cell])[]
  /** Writes what is no row. */
  readonly more?: (page: Page, source: Source) => void
}

const text =
  (field: string): Cell =>
  (source) =>
    typeof source[field] === 'object' ? goShow(source[field]) : ((source[field] as Value) ?? '')
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
/** A reference to a secret, as Go prints a pointer to one. */
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
    rows: [
      ['Monitors', list('monitors')],
      ['Path', text('path')],
      ['User', text('user')],
      ['SecretFile', text('secretFile')],
      ['SecretRef', secret],
      READ_ONLY,
    ],
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
  ['Gateway', text('gateway')],
  ['System', text('system')],
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

/** Kinds that pods and persistent volumes have alike. */
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
    rows: [['Server', text('server')], ['Path', text('path')], READ_ONLY],
  },
  quobyte: {
    title: "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
    rows: [['Registry', text('registry')], ['Volume', text('volume')], READ_ONLY],
  },
  vsphereVolume: {
    title: 'vSphereVolume (a Persistent Disk resource in vSphere)',
    rows: [['VolumePath', text('volumePath')], FS_TYPE, ['StoragePolicyName', text('storagePolicyName')]],
  },
  azureDisk: {
    title: 'AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)',
    rows: [
      ['DiskName', text('diskName')],
      ['DiskURI', text('diskURI')],
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
    rows: [['VolumeName', text('volumeName')], ['VolumeNamespace', text('volumeNamespace')], FS_TYPE, READ_ONLY],
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
    rows: [
      ['DatasetName', text('datasetName')],
      ['DatasetUUID', text('datasetUUID')],
    ],
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
    rows: [
      ['Repository', text('repository')],
      ['Revision', text('revision')],
    ],
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
    more: (page, { volumeClaimTemplate }) => {
      if (volumeClaimTemplate !== undefined) putClaim(page.nested(2), volumeClaimTemplate as never, undefined)
    },
  },
  rbd: rbd(reference('secretRef')),
  downwardAPI: { title: 'DownwardAPI (a volume populated by information about the pod)', more: putDownward },
  cinder: cinder(reference('secretRef')),
  scaleIO: { title: SCALE_IO, rows: [...SCALE_IO_ROWS, FS_TYPE, READ_ONLY] },
  cephfs: cephfs(reference('secretRef')),
  azureFile: {
    title: AZURE_FILE,
    rows: [['SecretName', text('secretName')], ['ShareName', text('shareName')], READ_ONLY],
  },
  flexVolume: flex(reference('secretRef')),
  projected: {
    title: 'Projected (a volume that contains injected data from multiple sources)',
    more: putProjected,
  },
  csi: { title: CSI, rows: [['Driver', text('driver')], FS_TYPE, READ_ONLY], more: putAttributes },
  image: {
    title: 'Image (a container image or OCI artifact)',
    rows: [
      ['Reference', text('reference')],
      ['PullPolicy', text('pullPolicy')],
    ],
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
    rows: [
      ['SecretName', text('secretName')],
      ['SecretNamespace', text('secretNamespace')],
      ['ShareName', text('shareName')],
      READ_ONLY,
    ],
  },
  flexVolume: flex(secretReference('secretRef')),
  csi: {
    title: CSI,
    rows: [['Driver', text('driver')], FS_TYPE, ['VolumeHandle', text('volumeHandle')], READ_ONLY],
    more: putAttributes,
  },
}

interface DownwardItem {
  readonly path: string
  readonly fieldRef?: { readonly fieldPath: string }
  readonly resourceFieldRef?: { readonly resource: string }
}

function putDownward(page: Page, { items = [] }: { items?: unknown }): void {
  page.put(2, 'Items:\n')
  for (const { path, fieldRef, resourceFieldRef } of items as DownwardItem[]) {
    if (fieldRef !== undefined) page.line(3, `${fieldRef.fieldPath} -> ${path}`)
    if (resourceFieldRef !== undefined) page.line(3, `${resourceFieldRef.resource} -> ${path}`)
  }
}

interface ProjectedSource {
  readonly secret?: { readonly name?: string; readonly optional?: boolean }
  readonly configMap?: { readonly name?: string; readonly optional?: boolean }
  readonly downwardAPI?: object
  readonly serviceAccountToken?: { readonly expirationSeconds?: number }
}

function putProjected(page: Page, { sources = [] }: { sources?: unknown }): void {
  for (const { secret, configMap, downwardAPI, serviceAccountToken } of sources as ProjectedSource[]) {
    const named = secret ?? (downwardAPI === undefined ? configMap : undefined)
    if (named !== undefined) {
      page.row(2, secret === undefined ? 'ConfigMapName' : 'SecretName', named.name ?? '')
      page.row(2, 'Optional', named.optional === true)
    } else if (downwardAPI !== undefined) {
      page.row(2, 'DownwardAPI', true)
    } else if (serviceAccountToken !== undefined) {
      page.row(2, 'TokenExpirationSeconds', serviceAccountToken.expirationSeconds ?? 0)
    }
  }
}

const MAX_ATTRIBUTE = 140

function putAttributes(page: Page, { volumeAttributes }: { volumeAttributes?: unknown }): void {
  const lines = byKey(volumeAttributes as Record<string, string> | undefined).map(([key, value]) =>
    shortened(`${key}=${value}`, MAX_ATTRIBUTE),
  )
  const [first = '<none>', ...others] = lines
  // Every part of the lines that follow is indented anew, as upstream writes them.
  page.put(2, `VolumeAttributes:\t${lines.length === 0 ? '' : '    '}${first}\n`)
  for (const line of others) page.put(2, `    \t    ${line}\n`)
}

/** Of a pod, or of a template where everything stands further in. */
export function putVolumes(page: Page, volumes: readonly Volume[] = [], margin = ''): void {
  if (volumes.length === 0) return page.put(0, `${margin}Volumes:\t<none>\n`)
  page.put(0, `${margin}Volumes:\n`)
  for (const volume of volumes) {
    page.put(1, `${margin === '' ? '' : ' '}${volume.name}:\n`)
    putSource(page, volume as unknown as Source, POD_KINDS)
  }
}

export function putPersistentSource(page: Page, spec: PersistentVolumeSpec): void {
  page.put(0, 'Source:\n')
  putSource(page, spec as unknown as Source, PERSISTENT_KINDS)
}

function putSource(page: Page, holder: Source, kinds: Readonly<Record<string, VolumeKind>>): void {
  const found = Object.entries(kinds).find(([field]) => holder[field] !== undefined && holder[field] !== null)
  if (found === undefined) return page.put(1, '<unknown>\n')
  const [field, { title, rows = [], more }] = found
  const source = holder[field] as Source
  page.row(2, 'Type', title)
  for (const [label, cell] of rows) putCell(page, label, cell(source))
  more?.(page, source)
}

/** One label upstream writes without a colon, one with a space behind it. */
function putCell(page: Page, label: string, value: Value): void {
  if (label === 'ISCSIInterface' || label.endsWith(': ')) page.line(2, label, value)
  else page.row(2, label, value)
}
