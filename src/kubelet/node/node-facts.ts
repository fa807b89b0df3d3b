/** Collects the facts of the Node status from the machine, the runtime and the plugins. Pure. */
import type { Node } from '#apis/core/v1.ts'

import type { Machine } from '../machine/machine.ts'
import type { RuntimeView } from './node-health.ts'
import type { NodeConditionValue, NodeFacts } from './node-status.ts'

export interface NodeFactSources {
  readonly name: string
  readonly machine: Machine
  readonly labels?: Readonly<Record<string, string>>
  readonly node?: Pick<NodeFacts, 'reserved' | 'maxImages' | 'cloud'>
  readonly view: RuntimeView
  readonly port: number
  readonly unhealthy: readonly NodeConditionValue[]
  /** Reported by plugins; undefined when there are none. */
  readonly volumesInUse?: readonly string[]
  readonly devices?: Pick<Node['status'], 'capacity' | 'allocatable'>
}

export function nodeFacts({
  name,
  machine,
  labels = {},
  node = {},
  view,
  port,
  unhealthy,
  ...brought
}: NodeFactSources): NodeFacts {
  const { capacity, addresses, machineId, systemUuid, bootId, kernel, osImage, architecture } = machine
  const handlers = view.handlers.map(({ name: handler, features }) => ({
    name: handler,
    features: {
      recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
      userNamespaces: features?.userNamespaces ?? false,
    },
  }))
  return {
    name,
    addresses,
    capacity,
    labels,
    ...node,
    machineId,
    systemUuid,
    bootId,
    kernel,
    osImage,
    architecture,
    port,
    unhealthy,
    ...brought,
    declared: ['RestartAllContainersOnContainerExits'],
    runtime: view.version,
    images: view.images,
    ...(handlers.length > 0 && { handlers }),
    features: view.features === undefined ? null : { supplementalGroupsPolicy: view.features.supplementalGroupsPolicy },
  }
}
