/** Creates the namespaces and priority classes that every cluster has. */
import { Namespaces } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'

import type { Registry } from '../registry/registry.ts'

const NAMESPACES = ['kube-system', 'kube-public', 'kube-node-lease', 'default']

/** Above every value that users may set. */
const PRIORITY_CLASSES = [
  {
    name: 'system-node-critical',
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
  {
    name: 'system-cluster-critical',
    value: 2_000_000_000,
    description:
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
]

export async function ensureSystemObjects(registry: Registry): Promise<void> {
  const namespaces = NAMESPACES.map((name) =>
    registry.writer.ensure(Namespaces, { metadata: { name }, spec: {}, status: {} }),
  )
  await Promise.all(namespaces)
  for (const { name, ...rest } of PRIORITY_CLASSES) {
    await registry.writer.ensure(PriorityClasses, {
      metadata: { name },
      preemptionPolicy: 'PreemptLowerPriority',
      ...rest,
    })
  }
}
