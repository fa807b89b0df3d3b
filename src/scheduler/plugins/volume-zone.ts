/** VolumeZone: a volume that is labelled with its zone or region can only be used there. */
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
import { storageClassOf } from '#model/volumes.ts'

import { definePlugin, type Handle, type PluginFactory, type Refusal, unresolvable } from '../framework.ts'
import type { NodeInfo } from '../node-info.ts'

const ELSEWHERE = unresolvable('node(s) had no available volume zone')

/** The labels that say where, with the newer name of each. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['topology.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['topology.kubernetes.io/region', 'topology.kubernetes.io/region'],
])

interface Place {
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
      // Where its volume will be is for others to see to.
      return found.volumeBindingMode === 'WaitForFirstConsumer'
        ? undefined
        : unresolvable('PersistentVolume had no name')
    }
    return {
      wakes: [
        {
          on: StorageClasses,
          actions: ['add'],
          helps: (_, now) => (now as StorageClass).volumeBindingMode === 'WaitForFirstConsumer',
        },
        { on: Nodes, actions: ['add', 'labels'] },
        {
          on: PersistentVolumeClaims,
          actions: ['add', 'update'],
          helps: (pod, now) => isNamedBy(pod, now as PersistentVolumeClaim),
        },
        {
          on: PersistentVolumes,
          actions: ['add', 'update'],
          helps: (_, now, old) =>
            old === undefined || !semanticEqual(placesOf(now as PersistentVolume), placesOf(old as PersistentVolume)),
        },
      ],
      preFilter({ pod, namespace }) {
        const places: Place[] = []
        for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
          if (persistentVolumeClaim === undefined) continue
          const found = volumeOf(namespace, persistentVolumeClaim.claimName)
          if (found !== undefined && 'code' in found) return found
          if (found !== undefined) places.push(...placesOf(found))
        }
        return places.length === 0 ? undefined : { filter: (node) => (isIn(places, node) ? undefined : ELSEWHERE) }
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

/** A volume may be in several zones: `a__b`. A label that says nothing sensible is passed over. */
function placesOf({ metadata: { labels } }: PersistentVolume): Place[] {
  return [...PLACES.keys()].flatMap((key) => {
    const values = labels?.[key]?.split('__').map((value) => value.trim()) ?? []
    return values.length === 0 || values.includes('') ? [] : [{ key, values }]
  })
}

/** A node that is nowhere in particular is everywhere. */
function isIn(places: readonly Place[], { labels = {} }: NodeInfo): boolean {
  if (![...PLACES.keys()].some((key) => labels[key] !== undefined)) return true
  return places.every(({ key, values }) => values.includes(labels[key] ?? labels[PLACES.get(key) ?? ''] ?? ''))
}
