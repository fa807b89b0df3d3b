/** `scale` of a custom resource: where its definition says that replicas and selector are. */
import type { CustomResourceSubresourceScale } from '#apis/apiextensions/v1.ts'
import type { ScaleRules } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'

import { readField, segmentsOf, writeField } from './field-path.ts'

export function scaleRules(declared: CustomResourceSubresourceScale): ScaleRules<KubeObject> {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = declared
  const spec = segmentsOf(specReplicasPath)
  const status = segmentsOf(statusReplicasPath)
  const selector = segmentsOf(labelSelectorPath)
  return {
    replicasPath: specReplicasPath.replace(/^\./, ''),
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

function numberAt(object: KubeObject, path: readonly string[]): number {
  const value = readField(object, path)
  return typeof value === 'number' ? value : 0
}
