/** Creates the CPU and memory managers from the configuration and the machine. */
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { Reserved } from '../node/allocatable.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import { CpuManager } from './cpu-manager.ts'
import { readCpus } from './cpu-topology.ts'
import { MemoryManager } from './memory-manager.ts'
import { readMemoryNodes } from './memory-nodes.ts'
import { reservedByNode } from './memory-reservations.ts'
import { NO_TOPOLOGY, reservedCpus, type TopologySettings } from './topology-settings.ts'

export interface Topology {
  readonly cpus: CpuManager
  readonly memory: MemoryManager
  /** NUMA nodes of the machine. */
  readonly nodes: readonly number[]
}

export interface TopologyOptions {
  readonly facts: Pick<PodFacts, 'rootDir'>
  readonly clock: Clock
  readonly meters: KubeletMeters
  /** Default: CPUs and memory are shared. */
  readonly topology?: TopologySettings | undefined
  readonly reserved?: Reserved
  /** Capacity of the node. */
  readonly capacity?: Readonly<Record<string, string>>
}

/** Rejects when the machine cannot satisfy the settings, or a checkpoint of other settings exists. */
export async function openTopology(options: TopologyOptions): Promise<Topology> {
  const { facts, clock, meters, topology = NO_TOPOLOGY, reserved = {}, capacity = {} } = options
  const { rootDir } = facts
  const memoryBytes = quantityValue(parseQuantity(capacity['memory'] ?? '0'))
  const [machine, memoryNodes] = await clock.during(Promise.all([readCpus(), readMemoryNodes(memoryBytes)]))
  const cpus = new CpuManager({
    path: join(rootDir, 'cpu_manager_state'),
    policy: topology.cpuPolicy,
    cpus: machine,
    reserved: reservedCpus(topology, machine, reserved),
    isFullCoresOnly: topology.isFullCoresOnly,
    isStrict: topology.isStrict,
    clock,
    meters,
  })
  const { memoryPolicy: policy, reservedMemory: reservations } = topology
  const memory = new MemoryManager({
    path: join(rootDir, 'memory_manager_state'),
    policy: policy === 'Static' ? 'Static' : 'None',
    nodes: memoryNodes,
    reserved: reservedByNode({ policy, nodes: memoryNodes, reservations, reserved, capacity }),
    clock,
    meters,
  })
  await clock.during(Promise.all([cpus.start(), memory.start()]))
  const nodes = new Set([...machine.map(({ node }) => node), ...memoryNodes.map(({ id }) => id)])
  return { cpus, memory, nodes: [...nodes].sort((a, b) => a - b) }
}
