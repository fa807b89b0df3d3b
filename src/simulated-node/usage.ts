/**
 * Computes the usage of simulated containers: half of their requests, or the annotated amount. Pure, so that metrics
 * need no kubelet.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Measure, type MeasuredNode, type MeasuredPod, sumOfMeasures } from '#kubelet/machine/node-stats.ts'
import { type ContainerRecord, isRunning } from '#kubelet/pod/container-runs.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import { ANNOTATION_PREFIX } from './fault.ts'

interface Usage {
  readonly cpuNanoCores: number
  readonly memoryBytes: number
}

/** Usage of containers without requests. */
const LEAST: Usage = { cpuNanoCores: 1_000_000, memoryBytes: 10 * 2 ** 20 }
const SHARE = 0.5

/**
 * Usage of one running container. The annotations `cpu` and `memory`, optionally with `.name` of a container, take
 * precedence.
 */
export function usageOf({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>, container: string): Usage {
  const { annotations = {} } = metadata
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const requests = all.find(({ name }) => name === container)?.resources?.requests
  const amount = (resource: 'cpu' | 'memory'): number | undefined => {
    const annotated =
      annotations[`${ANNOTATION_PREFIX}${resource}.${container}`] ?? annotations[ANNOTATION_PREFIX + resource]
    const requested = requests?.[resource]
    return read(annotated) ?? (requested === undefined ? undefined : (read(requested) ?? 0) * SHARE)
  }
  const [cores, bytes] = [amount('cpu'), amount('memory')]
  return {
    cpuNanoCores: cores === undefined ? LEAST.cpuNanoCores : Math.round(cores * 1e9),
    memoryBytes: bytes === undefined ? LEAST.memoryBytes : Math.round(bytes),
  }
}

/** Undefined for an invalid quantity. */
function read(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  try {
    return quantityNumber(parseQuantity(text))
  } catch {
    return undefined
  }
}

/** Usage of the node and its pods. */
export function measuredNode({ name, startedMs, capacityBytes, pods }: NodeInUse, nowMs: number): MeasuredNode {
  const since = (usage: Usage, startMs: number): Measure => ({
    ...usage,
    startedMs: startMs,
    cpuNanoSeconds: Math.round((usage.cpuNanoCores * Math.max(0, nowMs - startMs)) / 1000),
  })
  const measured = Array.from(pods).flatMap(({ pod, containers: records }): MeasuredPod[] => {
    const containers = records.filter(isRunning).map(({ spec, run }) => ({
      name: spec.name,
      ...since(usageOf(pod, spec.name), run?.startedMs ?? nowMs),
    }))
    return containers.length === 0 ? [] : [{ pod, containers, all: sumOfMeasures(containers) }]
  })
  const all = sumOfMeasures([since(OWN, startedMs), ...measured.map((pod) => pod.all)])
  return { name, all: { ...all, startedMs }, capacityBytes, pods: measured }
}

export interface NodeInUse {
  readonly name: string
  readonly startedMs: number
  readonly capacityBytes: number
  readonly pods: Iterable<{ readonly pod: Pod; readonly containers: readonly ContainerRecord[] }>
}

/** Usage of the node without pods. */
const OWN: Usage = { cpuNanoCores: 20_000_000, memoryBytes: 200 * 2 ** 20 }
