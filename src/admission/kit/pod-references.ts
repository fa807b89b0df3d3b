/** Lists the API objects that a pod references by name. */
import type { Container, EphemeralContainer, Pod, PodSpec, Volume, VolumeProjection } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

/** Secrets, including repetitions. */
export function secretNames(spec: PodSpec): string[] {
  return named([
    ...(spec.imagePullSecrets ?? []).map(({ name }) => name),
    ...containersOf(spec).flatMap(({ container }) => environmentNames(container, 'secret')),
    ...(spec.volumes ?? []).flatMap(volumeSecrets),
  ])
}

function configMapNames(spec: PodSpec): string[] {
  return named([
    ...containersOf(spec).flatMap(({ container }) => environmentNames(container, 'configMap')),
    ...(spec.volumes ?? []).flatMap(({ configMap, projected }) => [
      configMap?.name,
      ...(projected?.sources ?? []).map((source) => source.configMap?.name),
    ]),
  ])
}

function named(names: readonly (string | undefined)[]): string[] {
  return names.filter((name): name is string => name !== undefined && name !== '')
}

function environmentNames(
  container: Container | EphemeralContainer,
  what: 'secret' | 'configMap',
): (string | undefined)[] {
  return [
    ...(container.envFrom ?? []).map((source) => source[`${what}Ref`]?.name),
    ...(container.env ?? []).map(({ valueFrom }) => valueFrom?.[`${what}KeyRef`]?.name),
  ]
}

function volumeSecrets(volume: Volume): (string | undefined)[] {
  const { azureFile, secret, csi, projected } = volume
  const { cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos } = volume
  return [
    azureFile?.secretName,
    secret?.secretName,
    csi?.nodePublishSecretRef?.name,
    ...[cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos].map((source) => source?.secretRef?.name),
    ...(projected?.sources ?? []).map((source) => source.secret?.name),
  ]
}

/** By volume source: the API object it references, if any. */
const SOURCES: ReadonlyMap<string, string> = new Map([
  ...(
    'awsElasticBlockStore azureDisk cephfs cinder downwardAPI emptyDir fc flexVolume flocker gcePersistentDisk gitRepo ' +
    'hostPath image iscsi nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume'
  )
    .split(' ')
    .map((source) => [source, ''] as const),
  ['configMap', 'configmaps (via configmap volumes)'],
  ['secret', 'secrets (via secret volumes)'],
  ['csi', 'csidrivers (via CSI volumes)'],
  ['glusterfs', 'endpoints (via glusterFS volumes)'],
  ['persistentVolumeClaim', 'persistentvolumeclaims'],
  ['ephemeral', 'persistentvolumeclaims (via ephemeral volumes)'],
  ['azureFile', 'secrets (via azureFile volumes)'],
])

const PROJECTIONS: readonly (readonly [source: keyof VolumeProjection, resource: string])[] = [
  ['configMap', 'configmaps (via projected volumes)'],
  ['secret', 'secrets (via projected volumes)'],
  ['serviceAccountToken', 'serviceaccounts (via projected volumes)'],
  ['clusterTrustBundle', 'clustertrustbundles'],
  ['podCertificate', 'podcertificates'],
  ['downwardAPI', ''],
]

/**
 * The first kind of object that the pod needs, as text for a refusal; undefined if it needs none. Throws for unknown
 * volume types.
 */
export function apiReference({ spec }: Pod): string | undefined {
  if ((spec.serviceAccountName ?? '') !== '') return 'serviceaccounts'
  if (secretNames(spec).length > 0) return 'secrets'
  if (configMapNames(spec).length > 0) return 'configmaps'
  if ((spec.resourceClaims ?? []).length > 0) return 'resourceclaims'
  return (spec.volumes ?? []).map(volumeReference).find((resource) => resource !== '')
}

function volumeReference(volume: Volume): string {
  if (volume.projected !== undefined) {
    const references = (volume.projected.sources ?? []).map((source) => projectionReference(volume.name, source))
    return references.find((resource) => resource !== '') ?? ''
  }
  const source = Object.keys(volume).find((field) => SOURCES.has(field))
  if (source === undefined) throw new Error(`unknown volume type for volume  ${goQuote(volume.name)}`)
  return SOURCES.get(source) ?? ''
}

function projectionReference(name: string, source: VolumeProjection): string {
  const found = PROJECTIONS.find(([field]) => source[field] !== undefined)
  if (found === undefined) throw new Error(`unknown source for projected volume ${goQuote(name)}`)
  return found[1]
}
