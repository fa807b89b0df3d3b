/** Lists all scheduler plugins that a profile can name. */
import type { PluginFactory } from '../framework/framework.ts'
import { balancedAllocation } from './balanced-allocation.ts'
import { defaultBinder } from './default-binder.ts'
import { defaultPreemption } from './default-preemption.ts'
import { dynamicResources } from './dynamic-resources.ts'
import { gangScheduling } from './gang-scheduling.ts'
import { imageLocality } from './image-locality.ts'
import { interPodAffinity } from './inter-pod-affinity.ts'
import { nodeAffinity } from './node-affinity.ts'
import { nodeDeclaredFeatures } from './node-declared-features.ts'
import { nodeName } from './node-name.ts'
import { nodePorts } from './node-ports.ts'
import { nodeResourcesFit } from './node-resources-fit.ts'
import { nodeUnschedulable } from './node-unschedulable.ts'
import { nodeVolumeLimits } from './node-volume-limits.ts'
import { podTopologySpread } from './pod-topology-spread.ts'
import { prioritySort } from './priority-sort.ts'
import { schedulingGates } from './scheduling-gates.ts'
import { taintToleration } from './taint-toleration.ts'
import { volumeBinding } from './volume-binding.ts'
import { volumeRestrictions } from './volume-restrictions.ts'
import { volumeZone } from './volume-zone.ts'

export const PLUGINS: readonly PluginFactory[] = [
  balancedAllocation,
  defaultBinder,
  defaultPreemption,
  dynamicResources,
  gangScheduling,
  imageLocality,
  interPodAffinity,
  nodeAffinity,
  nodeDeclaredFeatures,
  nodeName,
  nodePorts,
  nodeResourcesFit,
  nodeUnschedulable,
  nodeVolumeLimits,
  podTopologySpread,
  prioritySort,
  schedulingGates,
  taintToleration,
  volumeBinding,
  volumeRestrictions,
  volumeZone,
]

/** Plugins that exist only with their gate. */
export const PLUGIN_GATES: ReadonlyMap<string, string> = new Map([
  ['DynamicResources', 'DynamicResourceAllocation'],
  ['NodeDeclaredFeatures', 'NodeDeclaredFeatures'],
  ['GangScheduling', 'GangScheduling'],
])

/** The default plugins in order, with their score weights. */
export const DEFAULT_PLUGINS: readonly (readonly [name: string, weight?: number])[] = [
  ['SchedulingGates'],
  ['PrioritySort'],
  ['NodeUnschedulable'],
  ['NodeName'],
  ['TaintToleration', 3],
  ['NodeAffinity', 2],
  ['NodePorts'],
  ['NodeResourcesFit', 1],
  ['VolumeRestrictions'],
  ['NodeVolumeLimits'],
  ['VolumeBinding'],
  ['VolumeZone'],
  ['PodTopologySpread', 2],
  ['InterPodAffinity', 2],
  ['DynamicResources', 2],
  ['DefaultPreemption'],
  ['NodeResourcesBalancedAllocation', 1],
  ['ImageLocality', 1],
  ['DefaultBinder'],
  ['NodeDeclaredFeatures'],
  ['GangScheduling'],
]
