/** Metrics of bound and unbound volumes and claims, computed when they are read. */
import { type PersistentVolumeClaim, PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'
import { storageClassOf } from '#model/volumes/volumes.ts'

import type { ControllerContext } from '../../controller.ts'

export function countBindings({ cache, meters }: ControllerContext): void {
  const isBound = ({ status }: { readonly status?: { readonly phase?: string } }): boolean => status?.phase === 'Bound'
  for (const [state, bound] of [
    ['bound', true],
    ['unbound', false],
  ] as const) {
    meters.collect(`pv_collector_${state}_pv_count`, (emit) => {
      const volumes = [...cache.list(PersistentVolumes)].filter((volume) => isBound(volume) === bound)
      for (const [[name = ''], count] of tally(volumes, (volume) => [storageClassOf(volume)])) emit(count, name)
    })
    meters.collect(`pv_collector_${state}_pvc_count`, (emit) => {
      const claims = [...cache.list(PersistentVolumeClaims)].filter((claim) => isBound(claim) === bound)
      for (const [[namespace = '', name = '', attributes = ''], count] of tally(claims, labelsOf))
        emit(count, namespace, name, attributes)
    })
  }
}

function labelsOf(claim: PersistentVolumeClaim): string[] {
  return [claim.metadata.namespace ?? '', storageClassOf(claim), claim.spec.volumeAttributesClassName ?? '']
}

function tally<T extends KubeObject>(objects: readonly T[], of: (object: T) => string[]): [string[], number][] {
  const groups = Map.groupBy(objects, (object) => JSON.stringify(of(object)))
  return Array.from(groups, ([key, all]) => [JSON.parse(key) as string[], all.length])
}
