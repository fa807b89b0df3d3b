/** Lists the objects that a pod or a volume refers to, and that its node may therefore read. */
import type { PersistentVolume, Pod, PodSpec } from '#apis/core/v1.ts'
import { firstByKey } from '#lib/repetition.ts'
import { containersOf } from '#model/pod-spec/walk.ts'
import { secretNames } from '#model/pod-spec/warnings/secret-names.ts'

/** The kinds that a node may read because of its pods. */
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

/** The key of an object: `secret/default/db`. */
export function referenceTo(kind: ReferredKind | 'persistentvolume', namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`
}

const MIRROR = 'kubernetes.io/config.mirror'

/** The pod itself and all its references. A mirror pod, which nodes create, grants its node only access to itself. */
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

/** The claim of an ephemeral volume is named after pod and volume. */
function claimNames({ metadata, spec }: Pod): (string | undefined)[] {
  return (spec.volumes ?? []).map(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName ?? (ephemeral === undefined ? undefined : `${metadata.name ?? ''}-${name}`),
  )
}

/** A claim made from a template has a name only in the pod's status. */
function resourceClaimNames({ spec, status }: Pod): (string | undefined)[] {
  const made = firstByKey(status?.resourceClaimStatuses ?? [], ({ name }) => name)
  return [
    ...(spec.resourceClaims ?? []).map(
      ({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)?.resourceClaimName,
    ),
    status?.extendedResourceClaimStatus?.resourceClaimName,
  ]
}

/** The Secrets that a kubelet needs to mount the volume, without those for controllers. */
export function volumeSecretReferences({ spec }: PersistentVolume): string[] {
  const home = spec.claimRef?.namespace ?? ''
  const { azureFile, cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = spec
  const azure =
    azureFile === undefined ? undefined : { name: azureFile.secretName, namespace: azureFile.secretNamespace ?? '' }
  // Old volumes of these kinds omit the namespace and mean that of their claim.
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
