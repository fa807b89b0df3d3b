/** Finds what objects name in their specs: configuration and volumes of pods, backends, volumes of claims. */
import type { Container, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, Service } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import type { Ref } from '../objects/ref.ts'
import { selects } from '../objects/selector.ts'

const BY_KIND: Readonly<Record<string, (object: KubeObject) => readonly Ref[]>> = {
  Pod: (pod) => [...nodeRefs(pod as Pod), ...podRefs((pod as Pod).spec, pod.metadata.namespace)],
  Deployment: templateRefs,
  StatefulSet: templateRefs,
  DaemonSet: templateRefs,
  ReplicaSet: templateRefs,
  Job: templateRefs,
  PersistentVolumeClaim: (claim) => {
    const { volumeName = '', storageClassName } = (claim as PersistentVolumeClaim).spec
    return unique([
      ref('v1', 'PersistentVolume', volumeName),
      ref('storage.k8s.io/v1', 'StorageClass', storageClassName ?? ''),
    ])
  },
  PersistentVolume: (volume) => {
    const { claimRef } = (volume as PersistentVolume).spec
    return unique([ref('v1', 'PersistentVolumeClaim', claimRef?.name ?? '', claimRef?.namespace)])
  },
  Ingress: (ingress) => ingressRefs(ingress as Ingress),
}

/** The objects that an object uses, each once. */
export function usedRefs(object: KubeObject): readonly Ref[] {
  return BY_KIND[kubernetesKind(object)]?.(object) ?? []
}

function templateRefs(object: KubeObject): readonly Ref[] {
  return podRefs(templateSpec(object), object.metadata.namespace)
}

function templateSpec(object: KubeObject): PodSpec | undefined {
  return (object as { spec?: { template?: { spec?: PodSpec } } }).spec?.template?.spec
}

function nodeRefs({ spec }: Pod): readonly Ref[] {
  return spec.nodeName === undefined ? [] : [ref('v1', 'Node', spec.nodeName)]
}

/** ConfigMaps, Secrets, claims and the ServiceAccount of a pod. */
function podRefs(spec: PodSpec | undefined, namespace: string | undefined): readonly Ref[] {
  if (spec === undefined) return []
  const named = (kind: string, name = ''): Ref => ref('v1', kind, name, namespace)
  const volumes = (spec.volumes ?? []).flatMap((volume) => [
    named('ConfigMap', volume.configMap?.name),
    named('Secret', volume.secret?.secretName),
    named('PersistentVolumeClaim', volume.persistentVolumeClaim?.claimName),
    ...(volume.projected?.sources ?? []).flatMap(({ configMap, secret }) => [
      named('ConfigMap', configMap?.name),
      named('Secret', secret?.name),
    ]),
  ])
  const containers: readonly Container[] = [...(spec.initContainers ?? []), ...spec.containers]
  const environment = containers.flatMap(({ env = [], envFrom = [] }) => [
    ...env.flatMap(({ valueFrom }) => [
      named('ConfigMap', valueFrom?.configMapKeyRef?.name),
      named('Secret', valueFrom?.secretKeyRef?.name),
    ]),
    ...envFrom.flatMap(({ configMapRef, secretRef }) => [
      named('ConfigMap', configMapRef?.name),
      named('Secret', secretRef?.name),
    ]),
  ])
  const pulls = (spec.imagePullSecrets ?? []).map(({ name }) => named('Secret', name))
  return unique([named('ServiceAccount', spec.serviceAccountName), ...volumes, ...environment, ...pulls])
}

function ingressRefs({ spec, metadata: { namespace } }: Ingress): readonly Ref[] {
  const backends = [
    spec.defaultBackend,
    ...(spec.rules ?? []).flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend)),
  ]
  return unique([
    ref('networking.k8s.io/v1', 'IngressClass', spec.ingressClassName ?? ''),
    ...backends.map((backend) => ref('v1', 'Service', backend?.service?.name ?? '', namespace)),
    ...(spec.tls ?? []).map(({ secretName = '' }) => ref('v1', 'Secret', secretName, namespace)),
  ])
}

function ref(apiVersion: string, kind: string, name: string, namespace?: string): Ref {
  return { apiVersion, kind, name, namespace }
}

function unique(refs: readonly Ref[]): readonly Ref[] {
  const byKey = new Map(
    refs.filter(({ name }) => name !== '').map((one) => [`${one.kind} ${one.namespace ?? ''}/${one.name}`, one]),
  )
  return [...byKey.values()]
}

/** Kinds whose objects can use an object of this kind. */
export const USERS: Readonly<Record<string, readonly string[]>> = {
  ConfigMap: ['pods'],
  Secret: ['pods', 'ingresses'],
  PersistentVolumeClaim: ['pods'],
  ServiceAccount: ['pods'],
  Service: ['ingresses'],
  Pod: ['services'],
  Deployment: ['services'],
  StatefulSet: ['services'],
  DaemonSet: ['services'],
  ReplicaSet: ['services'],
}

/** Those of the candidates that use the object, or select its pods. */
export function usersOf(object: KubeObject, candidates: readonly KubeObject[]): readonly KubeObject[] {
  const { name, namespace } = object.metadata
  return candidates.filter((candidate) => {
    if (candidate.kind === 'Service') return isSelected(candidate as Service, object)
    return usedRefs(candidate).some(
      (one) => one.kind === object.kind && one.name === name && one.namespace === namespace,
    )
  })
}

function isSelected({ spec }: Service, object: KubeObject): boolean {
  const template = (object as { spec?: { template?: KubeObject } }).spec?.template
  const labels = object.kind === 'Pod' ? object.metadata.labels : template?.metadata.labels
  return selects({ matchLabels: spec.selector ?? {} }, labels)
}
