/** PodTopologyLabels: copies the zone and region labels of a node to pods bound to it. */
import { type Binding, Nodes, type Pod } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PodTopologyLabelsOptions {
  readonly isEnabled: (gate: string) => boolean
}

const LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region']

export function createPodTopologyLabels({ isEnabled }: PodTopologyLabelsOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'PodTopologyLabels',
    on: ['CREATE'],
    // The labels of a binding are copied to its pod.
    resources: ['pods', 'pods/binding'],

    mutate(attributes) {
      const node = nodeOf(attributes)
      return node !== '' && isEnabled('PodTopologyLabelsAdmission') ? copyLabels(attributes, node) : undefined
    },
  })
}

function nodeOf({ object, subresource }: Attributes): string {
  if (subresource === '') return (object as Pod).spec.nodeName ?? ''
  const { target } = object as Binding
  return target?.kind === 'Node' ? (target.name ?? '') : ''
}

/** A missing node is no reason to refuse: pods may be bound to a node that does not exist. */
async function copyLabels({ objects, object }: Attributes, name: string): Promise<void> {
  const found = (await objects.get(Nodes, '', name))?.metadata.labels ?? {}
  const copied = LABELS.filter((label) => Object.hasOwn(found, label)).map((label) => [label, found[label] ?? ''])
  if (object === undefined || copied.length === 0) return
  object.metadata.labels = { ...object.metadata.labels, ...(Object.fromEntries(copied) as Record<string, string>) }
}
