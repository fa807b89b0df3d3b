/**
 * CSI migration: translates in-tree volumes to their CSI drivers. Components that attach, count or expand volumes see
 * only drivers.
 */
import type { CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec, Volume } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** The owner of a volume: its PersistentVolume, or the pod, which provides only a name and a namespace. */
interface VolumeOwner {
  readonly metadata: Pick<ObjectMeta, 'name' | 'labels' | 'annotations'>
  /** The namespace of secrets that are named without one. */
  readonly namespace: string
}

type AccessMode = NonNullable<PersistentVolumeSpec['accessModes']>[number]

type CsiSource = Omit<CSIPersistentVolumeSource, 'driver'>

interface MigratedPlugin<K extends keyof PersistentVolumeSpec = keyof PersistentVolumeSpec> {
  readonly plugin: string
  readonly driver: string
  /** The field of the in-tree source. */
  readonly source: K
  /** Undefined if the driver cannot express it. */
  known(source: NonNullable<PersistentVolumeSpec[K]>, owner: VolumeOwner): CsiSource | undefined
  /** Upstream's error for a source that the driver cannot express. */
  readonly complaint?: (source: NonNullable<PersistentVolumeSpec[K]>) => string
  /** The access modes of an inline volume; ReadWriteOnce by default. */
  readonly mode?: (source: NonNullable<PersistentVolumeSpec[K]>) => AccessMode
  /** The suffix of an inline volume's name after its driver; the handle by default. */
  readonly title?: (source: NonNullable<PersistentVolumeSpec[K]>, handle: string) => string
}

const define = <K extends keyof PersistentVolumeSpec>(one: MigratedPlugin<K>): MigratedPlugin =>
  one as unknown as MigratedPlugin
const readOnlyOrOne = ({ readOnly }: { readonly readOnly?: boolean }): AccessMode =>
  readOnly === true ? 'ReadOnlyMany' : 'ReadWriteOnce'

const MIGRATED: readonly MigratedPlugin[] = [
  define({
    plugin: 'kubernetes.io/aws-ebs',
    driver: 'ebs.csi.aws.com',
    source: 'awsElasticBlockStore',
    known({ volumeID, partition = 0, ...rest }) {
      const volumeHandle = volumeID.startsWith('aws://')
        ? /^aws:\/\/[^/]*\/+(vol-[^/]*)\/*$/.exec(volumeID)?.[1]
        : volumeID
      if (volumeHandle === undefined) return undefined
      return { volumeHandle, ...usual(rest), volumeAttributes: { partition: String(partition) } }
    },
    complaint: ({ volumeID }) =>
      `failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (${volumeID})`,
  }),
  define({
    plugin: 'kubernetes.io/azure-disk',
    driver: 'disk.csi.azure.com',
    source: 'azureDisk',
    known({ diskURI: volumeHandle, kind = 'Managed', cachingMode, fsType, readOnly = false }) {
      if (kind.toLowerCase() !== 'managed') return undefined
      const attributes = {
        ...(cachingMode !== undefined && { cachingmode: cachingMode }),
        ...(fsType !== undefined && { fstype: fsType }),
      }
      return {
        volumeHandle,
        ...usual({ fsType: fsType ?? '', readOnly }),
        volumeAttributes: { ...attributes, kind: 'Managed' },
      }
    },
    complaint: ({ kind = '' }) => `kind(${kind}) is not supported in csi migration`,
    title: ({ diskURI }) => diskURI,
  }),
  define({
    plugin: 'kubernetes.io/azure-file',
    driver: 'file.csi.azure.com',
    source: 'azureFile',
    known({ secretName, shareName, secretNamespace, readOnly = false }, { metadata, namespace: own }) {
      const namespace = secretNamespace ?? own
      if (namespace === '') return undefined
      const account = /azure-storage-account-(.+)-secret/.exec(secretName)?.[1] ?? secretName
      const group = metadata.annotations?.['kubernetes.io/azure-file-resource-group'] ?? ''
      return {
        volumeHandle: [group, account, shareName, metadata.name ?? '', namespace].join('#'),
        ...usual({ readOnly }),
        volumeAttributes: { sharename: shareName },
        nodeStageSecretRef: { name: secretName, namespace },
      }
    },
    mode: () => 'ReadWriteMany',
    title: (_source, handle) => handle,
  }),
  define({
    plugin: 'kubernetes.io/cinder',
    driver: 'cinder.csi.openstack.org',
    source: 'cinder',
    known: ({ volumeID: volumeHandle, fsType = '', readOnly = false }) => ({
      volumeHandle,
      ...usual({ fsType, readOnly }),
    }),
  }),
  define({
    plugin: 'kubernetes.io/gce-pd',
    driver: 'pd.csi.storage.gke.io',
    source: 'gcePersistentDisk',
    known({ pdName, partition = 0, ...rest }, { metadata: { labels = {} } }) {
      const zonePath = googleZone(
        labels['failure-domain.beta.kubernetes.io/zone'] || labels['topology.kubernetes.io/zone'],
      )
      if (zonePath === undefined) return undefined
      const volumeHandle = `projects/UNSPECIFIED/${zonePath}/disks/${pdName}`
      return { volumeHandle, ...usual(rest), volumeAttributes: { partition: partition === 0 ? '' : String(partition) } }
    },
    mode: readOnlyOrOne,
    title: ({ pdName }) => `pd.csi.storage.gke.io-${pdName}`,
  }),
  define({
    plugin: 'kubernetes.io/portworx-volume',
    driver: 'pxd.portworx.com',
    source: 'portworxVolume',
    known: ({ volumeID: volumeHandle, fsType = '' }) => ({ volumeHandle, ...usual({ fsType }) }),
    mode: readOnlyOrOne,
  }),
  define({
    plugin: 'kubernetes.io/vsphere-volume',
    driver: 'csi.vsphere.vmware.com',
    source: 'vsphereVolume',
    known: ({ volumePath: volumeHandle, fsType = '', storagePolicyName: storagepolicyname }) => ({
      volumeHandle,
      ...usual({ fsType }),
      ...(storagepolicyname !== undefined && { volumeAttributes: { storagepolicyname } }),
    }),
  }),
]

/** Omits unset values. */
function usual({ fsType = '', readOnly = false }: { fsType?: string; readOnly?: boolean }): Partial<CsiSource> {
  return { ...(fsType !== '' && { fsType }), ...(readOnly && { readOnly }) }
}

/** One zone, the common region of several, or undefined. */
function googleZone(label = ''): string | undefined {
  const zones = label.split('__')
  if (zones.length === 1) return `zones/${label === '' ? 'UNSPECIFIED' : label}`
  const regions = new Set(zones.map((zone) => /^([^-]*-[^-]*)-[^-]*$/.exec(zone)?.[1]))
  const [region] = regions
  return regions.size === 1 && region !== undefined ? `regions/${region}` : undefined
}

/** The driver that replaces the plugin. */
export function driverOf(plugin: string): string | undefined {
  return MIGRATED.find((one) => one.plugin === plugin)?.driver
}

/** The in-tree plugin of the volume, and its driver. */
export function migratedSource(
  spec: PersistentVolumeSpec | Volume,
): Pick<MigratedPlugin, 'plugin' | 'driver'> | undefined {
  return migratedIn(spec)
}

function migratedIn(spec: PersistentVolumeSpec | Volume): MigratedPlugin | undefined {
  return MIGRATED.find(({ source }) => (spec as PersistentVolumeSpec)[source] !== undefined)
}

export interface TranslatedVolume {
  /** The in-tree plugin name, which nodes use to report migration. */
  readonly plugin: string
  readonly title: string
  /** The form of a PersistentVolume of the driver. */
  readonly spec: PersistentVolumeSpec & { readonly csi: CSIPersistentVolumeSource }
}

/** Translates an in-tree volume; undefined if it is none or cannot be translated. */
export function translatedVolume({ metadata, spec }: PersistentVolume): TranslatedVolume | undefined {
  const found = translated(spec, { metadata, namespace: spec.claimRef?.namespace ?? '' })
  if (found === undefined) return undefined
  const { accessModes, volumeMode } = spec
  const kept = { ...(accessModes !== undefined && { accessModes }), ...(volumeMode !== undefined && { volumeMode }) }
  return { plugin: found.plugin, title: metadata.name ?? '', spec: { ...kept, csi: found.csi } }
}

/** The same for an inline volume of a pod in that namespace. */
export function translatedInline(volume: Volume, namespace: string): TranslatedVolume | undefined {
  const found = translated(volume, { metadata: { name: volume.name }, namespace: namespace || 'default' })
  if (found === undefined) return undefined
  const { plugin, driver, csi, mode, title, source } = found
  const described = (volume as unknown as PersistentVolumeSpec)[source] as never
  const name = title?.(described, csi.volumeHandle) ?? `${driver}-${csi.volumeHandle}`
  const volumeMode = source === 'gcePersistentDisk' ? ({ volumeMode: 'Filesystem' } as const) : {}
  return { plugin, title: name, spec: { csi, accessModes: [mode?.(described) ?? 'ReadWriteOnce'], ...volumeMode } }
}

/** The error of an inline volume that cannot be translated. */
export function translationError(volume: Volume): string {
  const migrated = migratedIn(volume)
  const source = (volume as unknown as PersistentVolumeSpec)[migrated?.source ?? 'csi'] as never
  return migrated?.complaint?.(source) ?? `could not find in-tree plugin translation logic for "${volume.name}"`
}

function translated(
  spec: PersistentVolumeSpec | Volume,
  owner: VolumeOwner,
): (MigratedPlugin & { csi: CSIPersistentVolumeSource }) | undefined {
  const migrated = migratedIn(spec)
  const known = migrated?.known((spec as PersistentVolumeSpec)[migrated.source] as never, owner)
  if (migrated === undefined || known === undefined) return undefined
  return { ...migrated, csi: { driver: migrated.driver, ...known } }
}
