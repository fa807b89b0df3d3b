/** Plugins of old and the CSI drivers that do now what they did. */
import type { PersistentVolumeSpec } from '#apis/core/v1.ts'

interface Migrated {
  readonly plugin: string
  readonly driver: string
  /** The field of a volume that was the plugin's. */
  readonly source: keyof PersistentVolumeSpec
}

const MIGRATED: readonly Migrated[] = [
  { plugin: 'kubernetes.io/aws-ebs', driver: 'ebs.csi.aws.com', source: 'awsElasticBlockStore' },
  { plugin: 'kubernetes.io/azure-disk', driver: 'disk.csi.azure.com', source: 'azureDisk' },
  { plugin: 'kubernetes.io/azure-file', driver: 'file.csi.azure.com', source: 'azureFile' },
  { plugin: 'kubernetes.io/cinder', driver: 'cinder.csi.openstack.org', source: 'cinder' },
  { plugin: 'kubernetes.io/gce-pd', driver: 'pd.csi.storage.gke.io', source: 'gcePersistentDisk' },
  { plugin: 'kubernetes.io/portworx-volume', driver: 'pxd.portworx.com', source: 'portworxVolume' },
  { plugin: 'kubernetes.io/vsphere-volume', driver: 'csi.vsphere.vmware.com', source: 'vsphereVolume' },
]

/** The driver that does now what the plugin did. */
export function driverOf(plugin: string): string | undefined {
  return MIGRATED.find((one) => one.plugin === plugin)?.driver
}

/** The plugin of old that the volume is of, and its driver. */
export function migratedSource(spec: PersistentVolumeSpec): Pick<Migrated, 'plugin' | 'driver'> | undefined {
  return MIGRATED.find(({ source }) => spec[source] !== undefined)
}
