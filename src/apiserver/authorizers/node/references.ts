/** What a pod, or a volume, makes its node need: the names of everything it refers to. */
import type { PersistentVolume, Pod, PodSpec } from '#apis/core/v1.ts'
import { firstByKey } from '#lib/repetition.ts'
import { secretNames } from '#model/pod-spec/secret-names.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

/** Kinds that a node may read because of its pods. */
export type ReferredKind =
  | 'configmap'
  | 'persistentvolumeclaim'
  | 'pod'
  | 'resourceclaim'
  | 'secret'
  | 'serviceaccount'
  | 'volumeattachment'
  | 'resourceslice'
  | 'podcertificaterequest'

/** Names an object: `secret/default/db`. */
export function referenceTo(kind: ReferredKind | 'persistentvolume', namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`
}

const MIRROR = 'kubernetes.io/config.mirror'

/** The pod itself and everything it refers to. A mirror pod, which nodes create, gives its node nothing but itself. */
export function podReferences(pod: Pod): Set<string> {
  const { namespace = '', name = '', annotations = {} } = pod.metadata
  const own = referenceTo('pod', namespace, name)
  if (Object.hasOwn(annotations, MIRROR)) return new Set([own])
  const to = (kind: ReferredKind, names: Iterable<string | undefined>): string[] =>
    [...names]
      .filter((one) => one !== undefined && one !== '')
      .map((one) => referenceTo(kind, namespace, one as string))
  return new Set([
    own,
    ...to('serviceaccount', [pod.spec.serviceAccountName]),
    ...to('secret', secretNames(pod.spec)),
    ...to('configmap', configMapNames(pod.spec)),
    ...to('persistentvolumeclaim', claimNames(pod)),
    ...to('resourceclaim', resourceClaimNames(pod)),
  ])
}

function configMapNames(spec: PodSpec): (string | undefined)[] {
  return [
    ...containersOf(spec).flatMap(({ container: { env = [], envFrom = [] } }) => [
      ...envFrom.map(({ configMapRef }) => configMapRef?.name),
      ...env.map(({ valueFrom }) => valueFrom?.configMapKeyRef?.name),
    ]),
    ...(spec.volumes ?? []).flatMap(({ configMap, projected }) => [
      configMap?.name,
      ...(projected?.sources ?? []).map((source) => source.configMap?.name),
    ]),
  ]
}

/** An ephemeral volume's claim is named after pod and volume. */
function claimNames({ metadata, spec }: Pod): (string | undefined)[] {
  return (spec.volumes ?? []).map(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName ?? (ephemeral === undefined ? undefined : `${metadata.name ?? ''}-${name}`),
  )
}

/** A claim made from a template is known by its name once status says so. */
function resourceClaimNames({ spec, status }: Pod): (string | undefined)[] {
  const made = firstByKey(status?.resourceClaimStatuses ?? [], ({ name }) => name)
  return [
    ...(spec.resourceClaims ?? []).map(
      ({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)?.resourceClaimName,
    ),
    status?.extendedResourceClaimStatus?.resourceClaimName,
  ]
}

/** Secrets that a kubelet needs to mount the volume; those for controllers are none of its business. */
export function volumeSecretReferences({ spec }: PersistentVolume): string[] {
  const home = spec.claimRef?.namespace ?? ''
  const { azureFile, cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = spec
  const azure =
    azureFile === undefined ? undefined : { name: azureFile.secretName, namespace: azureFile.secretNamespace ?? '' }
  // Old volumes of these kinds leave the namespace out and mean that of their claim.
  const atHome = [azure, cephfs?.secretRef, flexVolume?.secretRef, rbd?.secretRef, scaleIO?.secretRef, iscsi?.secretRef]
  const asNamed = [
    cinder?.secretRef,
    storageos?.secretRef,
    csi?.nodePublishSecretRef,
    csi?.nodeStageSecretRef,
    csi?.nodeExpandSecretRef,
  ]
  const named = (reference: { name?: string; namespace?: string } | undefined, fallback: string): string[] => {
    const { name = '', namespace = '' } = reference ?? {}
    return name === '' ? [] : [referenceTo('secret', namespace === '' ? fallback : namespace, name)]
  }
  return [...atHome.flatMap((one) => named(one, home)), ...asNamed.flatMap((one) => named(one, ''))]
}
