/**
 * Plugins of old and the CSI drivers that do now what they did: a volume that a plugin described, as its driver knows it. Who
 * attaches, counts or grows volumes sees drivers alone.
 */
import type { CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec, Volume } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** Where a volume is described: its PersistentVolume, or the pod, in which it has but a name and a namespace. */
interface Place {
  readonly metadata: Pick<ObjectMeta, 'name' | 'labels' | 'annotations'>
  /** Where secrets are that are named without a namespace. */
  readonly namespace: string
}

type AccessMode = NonNullable<PersistentVolumeSpec['accessModes']>[number]

type Known = Omit<CSIPersistentVolumeSource, 'driver'>

interface Migrated<K extends keyof PersistentVolumeSpec = keyof PersistentVolumeSpec> {
  readonly plugin: string
  readonly driver: string
  /** The field of a volume that was the plugin's. */
  readonly source: K
  /** Undefined when the driver has no word for it. */
  known(source: NonNullable<PersistentVolumeSpec[K]>, place: Place): Known | undefined
  /** Upstream's complaint about one that the driver has no word for. */
  readonly complaint?: (source: NonNullable<PersistentVolumeSpec[K]>) => string
  /** How one that is described in a pod may be used; default: by one node. */
  readonly mode?: (source: NonNullable<PersistentVolumeSpec[K]>) => AccessMode
  /** What one that is described in a pod is called after its driver; default: the handle. */
  readonly title?: (source: NonNullable<PersistentVolumeSpec[K]>, handle: string) => string
}

const define = <K extends keyof PersistentVolumeSpec>(one: Migrated<K>): Migrated => one as unknown as Migrated
const readOnlyOrOne = ({ readOnly }: { readonly readOnly?: boolean }): AccessMode =>
  readOnly === true ? 'ReadOnlyMany' : 'ReadWriteOnce'

const MIGRATED: readonly Migrated[] = [
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
      const told = {
        ...(cachingMode !== undefined && { cachingmode: cachingMode }),
        ...(fsType !== undefined && { fstype: fsType }),
      }
      return {
        volumeHandle,
        ...usual({ fsType: fsType ?? '', readOnly }),
        volumeAttributes: { ...told, kind: 'Managed' },
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
      const place = googlePlace(
        labels['failure-domain.beta.kubernetes.io/zone'] || labels['topology.kubernetes.io/zone'],
      )
      if (place === undefined) return undefined
      const volumeHandle = `projects/UNSPECIFIED/${place}/disks/${pdName}`
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

/** What is not so is not said. */
function usual({ fsType = '', readOnly = false }: { fsType?: string; readOnly?: boolean }): Partial<Known> {
  return { ...(fsType !== '' && { fsType }), ...(readOnly && { readOnly }) }
}

/** One zone, the region that several are in, or nothing that anybody knows of. */
function googlePlace(label = ''): string | undefined {
  const zones = label.split('__')
  if (zones.length === 1) return `zones/${label === '' ? 'UNSPECIFIED' : label}`
  const regions = new Set(zones.map((zone) => /^([^-]*-[^-]*)-[^-]*$/.exec(zone)?.[1]))
  const [region] = regions
  return regions.size === 1 && region !== undefined ? `regions/${region}` : undefined
}

/** The driver that does now what the plugin did. */
export function driverOf(plugin: string): string | undefined {
  return MIGRATED.find((one) => one.plugin === plugin)?.driver
}

/** The plugin of old that the volume is of, and its driver. */
export function migratedSource(spec: PersistentVolumeSpec | Volume): Pick<Migrated, 'plugin' | 'driver'> | undefined {
  return migratedIn(spec)
}

function migratedIn(spec: PersistentVolumeSpec | Volume): Migrated | undefined {
  return MIGRATED.find(({ source }) => (spec as PersistentVolumeSpec)[source] !== undefined)
}

export interface Translated {
  /** The plugin of old: nodes say of which they leave to the driver. */
  readonly plugin: string
  readonly title: string
  /** As a PersistentVolume of the driver would have it. */
  readonly spec: PersistentVolumeSpec & { readonly csi: CSIPersistentVolumeSource }
}

/** A volume of a plugin of old as its driver knows it; undefined when it is none, or there is no such thing. */
export function translatedVolume({ metadata, spec }: PersistentVolume): Translated | undefined {
  const found = translated(spec, { metadata, namespace: spec.claimRef?.namespace ?? '' })
  if (found === undefined) return undefined
  const { accessModes, volumeMode } = spec
  const kept = { ...(accessModes !== undefined && { accessModes }), ...(volumeMode !== undefined && { volumeMode }) }
  return { plugin: found.plugin, title: metadata.name ?? '', spec: { ...kept, csi: found.csi } }
}

/** The same of a volume that is described in a pod of that namespace. */
export function translatedInline(volume: Volume, namespace: string): Translated | undefined {
  const found = translated(volume, { metadata: { name: volume.name }, namespace: namespace || 'default' })
  if (found === undefined) return undefined
  const { plugin, driver, csi, mode, title, source } = found
  const described = (volume as unknown as PersistentVolumeSpec)[source] as never
  const name = title?.(described, csi.volumeHandle) ?? `${driver}-${csi.volumeHandle}`
  const volumeMode = source === 'gcePersistentDisk' ? ({ volumeMode: 'Filesystem' } as const) : {}
  return { plugin, title: name, spec: { csi, accessModes: [mode?.(described) ?? 'ReadWriteOnce'], ...volumeMode } }
}

/** Why one that is described in a pod, and was a plugin's, is nothing that its driver knows. */
export function whyUntranslated(volume: Volume): string {
  const migrated = migratedIn(volume)
  const source = (volume as unknown as PersistentVolumeSpec)[migrated?.source ?? 'csi'] as never
  return migrated?.complaint?.(source) ?? `could not find in-tree plugin translation logic for "${volume.name}"`
}

function translated(
  spec: PersistentVolumeSpec | Volume,
  place: Place,
): (Migrated & { csi: CSIPersistentVolumeSource }) | undefined {
  const migrated = migratedIn(spec)
  const known = migrated?.known((spec as PersistentVolumeSpec)[migrated.source] as never, place)
  if (migrated === undefined || known === undefined) return undefined
  return { ...migrated, csi: { driver: migrated.driver, ...known } }
}
