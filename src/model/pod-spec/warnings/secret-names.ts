/** Collects the names of all Secrets that a pod refers to. */
import type { PodSpec, Volume } from '#apis/core/v1.ts'

import { containersOf } from '../walk.ts'

export function secretNames(spec: PodSpec): (string | undefined)[] {
  return [
    ...(spec.imagePullSecrets ?? []).map(({ name }) => name),
    ...containersOf(spec).flatMap(({ container: { env = [], envFrom = [] } }) => [
      ...envFrom.map(({ secretRef }) => secretRef?.name),
      ...env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
    ]),
    ...(spec.volumes ?? []).flatMap(volumeSecrets),
  ]
}

/** Volume types with a `secretRef`. */
const WITH_SECRET_REF = ['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'] as const

function volumeSecrets(volume: Volume): (string | undefined)[] {
  return [
    volume.azureFile?.secretName,
    volume.secret?.secretName,
    volume.csi?.nodePublishSecretRef?.name,
    ...WITH_SECRET_REF.map((type) => volume[type]?.secretRef?.name),
    ...(volume.projected?.sources ?? []).map(({ secret }) => secret?.name),
  ]
}
