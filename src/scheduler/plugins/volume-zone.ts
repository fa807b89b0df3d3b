/** VolumeZone: rejects nodes outside of the zone or region in the labels of the pod's volumes. */
import {
  Nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
} from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'
import { storageClassOf } from '#model/volumes/volumes.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import { definePlugin, type Handle, type PluginFactory, type Refusal, unresolvable } from '../framework/framework.ts'

const ELSEWHERE = unresolvable('node(s) had no available volume zone')

/** The topology labels, with the current name of each. */
const TOPOLOGY_LABELS: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['topology.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['topology.kubernetes.io/region', 'topology.kubernetes.io/region'],
])

interface TopologyValue {
  readonly key: string
  readonly values: readonly string[]
}

export const volumeZone: PluginFactory = definePlugin({
  name: 'VolumeZone',
  create({ of }: Handle) {
    const parts = { claims: of(PersistentVolumeClaims), volumes: of(PersistentVolumes), classes: of(StorageClasses) }
    const volumeOf = (namespace: string, name: string): PersistentVolume | Refusal | undefined => {
      const claim = parts.claims.get(keyOf(namespace, name))
      if (claim === undefined) return missing('persistentvolumeclaim', name)
      const { volumeName = '' } = claim.spec
      if (volumeName !== '') return parts.volumes.get(volumeName) ?? missing('persistentvolume', volumeName)
      const className = storageClassOf(claim)
      if (className === '') return unresolvable('PersistentVolumeClaim had no pv name and storageClass name')
      const found = parts.classes.get(className)
      if (found === undefined) return missing('storageclass.storage.k8s.io', className)
      // VolumeBinding handles claims that wait for their first consumer.
      return found.volumeBindingMode === 'WaitForFirstConsumer'
        ? undefined
        : unresolvable('PersistentVolume had no name')
    }
    return {
      eventsToRegister: [
        {
          resource: StorageClasses,
          actions: ['add'],
          queueingHint: (_, now) => (now as StorageClass).volumeBindingMode === 'WaitForFirstConsumer',
        },
        { resource: Nodes, actions: ['add', 'labels'] },
        {
          resource: PersistentVolumeClaims,
          actions: ['add', 'update'],
          queueingHint: (pod, now) => isNamedBy(pod, now as PersistentVolumeClaim),
        },
        {
          resource: PersistentVolumes,
          actions: ['add', 'update'],
          queueingHint: (_, now, old) =>
            old === undefined ||
            !semanticEqual(topologiesOf(now as PersistentVolume), topologiesOf(old as PersistentVolume)),
        },
      ],
      preFilter({ pod, namespace }) {
        const topologies: TopologyValue[] = []
        for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
          if (persistentVolumeClaim === undefined) continue
          const found = volumeOf(namespace, persistentVolumeClaim.claimName)
          if (found !== undefined && 'code' in found) return found
          if (found !== undefined) topologies.push(...topologiesOf(found))
        }
        return topologies.length === 0
          ? undefined
          : { filter: (node) => (isIn(topologies, node) ? undefined : ELSEWHERE) }
      },
    }
  },
})

function missing(kind: string, name: string): Refusal {
  return unresolvable(`${kind} ${JSON.stringify(name)} not found`)
}

function isNamedBy({ metadata, spec }: Pod, claim: PersistentVolumeClaim): boolean {
  if (metadata.namespace !== claim.metadata.namespace) return false
  return (spec.volumes ?? []).some(({ persistentVolumeClaim: own }) => own?.claimName === claim.metadata.name)
}

/** A volume may be in several zones: `a__b`. Invalid label values are ignored. */
function topologiesOf({ metadata: { labels } }: PersistentVolume): TopologyValue[] {
  return [...TOPOLOGY_LABELS.keys()].flatMap((key) => {
    const values = labels?.[key]?.split('__').map((value) => value.trim()) ?? []
    return values.length === 0 || values.includes('') ? [] : [{ key, values }]
  })
}

/** A node without topology labels fits. */
function isIn(topologies: readonly TopologyValue[], { labels = {} }: NodeInfo): boolean {
  if (![...TOPOLOGY_LABELS.keys()].some((key) => labels[key] !== undefined)) return true
  return topologies.every(({ key, values }) =>
    values.includes(labels[key] ?? labels[TOPOLOGY_LABELS.get(key) ?? ''] ?? ''),
  )
}
