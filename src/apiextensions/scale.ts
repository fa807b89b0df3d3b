/**
 * The `scale` subresource of custom resources: reads and writes replicas and selector at the paths of the
 * CustomResourceDefinition.
 */
import type { CustomResourceDefinitionSpec, CustomResourceSubresourceScale } from '#apis/apiextensions/v1.ts'
import type { ScaleRules } from '#apiserver/registry/resource.ts'
import type { ReplicasPaths } from '#meta/apply/scale-fields.ts'
import type { KubeObject } from '#meta/object.ts'

import { readField, segmentsOf, writeField } from './field-path.ts'

/** `replicasPaths`: of all versions of the definition. */
export function scaleRules(
  declared: CustomResourceSubresourceScale,
  replicasPaths: ReplicasPaths,
): ScaleRules<KubeObject> {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = declared
  const spec = segmentsOf(specReplicasPath)
  const status = segmentsOf(statusReplicasPath)
  const selector = segmentsOf(labelSelectorPath)
  return {
    replicasPaths,
    replicas: (object) => numberAt(object, spec),
    setReplicas: (object, replicas) => writeField(object, spec, replicas),
    statusReplicas: (object) => numberAt(object, status),
    selector(object) {
      const text = labelSelectorPath === '' ? undefined : readField(object, selector)
      return typeof text === 'string' ? text : ''
    },
    obstacle: (object) =>
      typeof readField(object, spec) === 'number'
        ? undefined
        : `the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`,
  }
}

/** Null for versions without a Scale. */
export function replicasPathsOf({ group, versions }: CustomResourceDefinitionSpec): ReplicasPaths {
  return new Map(
    versions.map(({ name, subresources }) => [
      `${group}/${name}`,
      subresources?.scale?.specReplicasPath.replace(/^\./, '') ?? null,
    ]),
  )
}

function numberAt(object: KubeObject, path: readonly string[]): number {
  const value = readField(object, path)
  return typeof value === 'number' ? value : 0
}
