/** Summaries of claims and volumes. */
import type { PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'

import { fields, link, type Section, type Value } from './section.ts'

export function claimSections({ spec, status }: PersistentVolumeClaim): readonly Section[] {
  return [
    fields('Claim', [
      [
        'Volume',
        spec.volumeName === undefined || spec.volumeName === ''
          ? undefined
          : link('v1', 'PersistentVolume', spec.volumeName),
      ],
      ['Requested', spec.resources?.requests?.['storage']],
      ['Capacity', status.capacity?.['storage']],
      ['Access modes', spec.accessModes],
      ['Volume mode', spec.volumeMode],
      ['Storage class', storageClass(spec.storageClassName)],
    ]),
  ]
}

export function volumeSections({ spec, status }: PersistentVolume): readonly Section[] {
  const { claimRef } = spec
  return [
    fields('Volume', [
      [
        'Claim',
        claimRef === undefined
          ? undefined
          : {
              ...link('v1', 'PersistentVolumeClaim', claimRef.name ?? '', claimRef.namespace),
              text: `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`,
            },
      ],
      ['Capacity', spec.capacity?.['storage']],
      ['Access modes', spec.accessModes],
      ['Reclaim policy', spec.persistentVolumeReclaimPolicy],
      ['Storage class', storageClass(spec.storageClassName)],
      ['Source', sourceOf(spec)],
      ['Reason', status.reason],
      ['Message', status.message],
    ]),
  ]
}

function storageClass(name = ''): Value | undefined {
  return name === '' ? undefined : link('storage.k8s.io/v1', 'StorageClass', name)
}

function sourceOf({ csi, hostPath, nfs, local }: PersistentVolume['spec']): string | undefined {
  if (csi !== undefined) return `CSI ${csi.driver} ${csi.volumeHandle}`
  if (hostPath !== undefined) return `hostPath ${hostPath.path}`
  if (nfs !== undefined) return `NFS ${nfs.server}:${nfs.path}`
  return local === undefined ? undefined : `local ${local.path}`
}
