/**
 * What containers that never run use of their node: half of what they ask for, or what annotations say. Pure, so that
 * whoever serves metrics can ask without a kubelet.
 */
import type { Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import { type ContainerRecord, isRunning } from '../container-runs.ts'
import { type Measure, type MeasuredNode, type MeasuredPod, sumOfMeasures } from '../node-stats.ts'
import { ANNOTATION_PREFIX } from './fault.ts'

interface Usage {
  readonly cpuNanoCores: number
  readonly memoryBytes: number
}

/** Of containers that ask for nothing. */
const LEAST: Usage = { cpuNanoCores: 1_000_000, memoryBytes: 10 * 2 ** 20 }
const SHARE = 0.5

/** Of one container that runs; annotations `cpu` and `memory`, of all containers or with `.name` of one, count first. */
export function usageOf({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>, container: string): Usage {
  const { annotations = {} } = metadata
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const requests = all.find(({ name }) => name === container)?.resources?.requests
  const amount = (resource: 'cpu' | 'memory'): number | undefined => {
    const told =
      annotations[`${ANNOTATION_PREFIX}${resource}.${container}`] ?? annotations[ANNOTATION_PREFIX + resource]
    const asked = requests?.[resource]
    return read(told) ?? (asked === undefined ? undefined : (read(asked) ?? 0) * SHARE)
  }
  const [cores, bytes] = [amount('cpu'), amount('memory')]
  return {
    cpuNanoCores: cores === undefined ? LEAST.cpuNanoCores : Math.round(cores * 1e9),
    memoryBytes: bytes === undefined ? LEAST.memoryBytes : Math.round(bytes),
  }
}

/** Undefined for what is no quantity. */
function read(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  try {
    return quantityNumber(parseQuantity(text))
  } catch {
    return undefined
  }
}

/** What the node and its pods would show, had they run. */
export function measuredNode({ name, startedMs, capacityBytes, pods }: NodeInUse, nowMs: number): MeasuredNode {
  const since = (usage: Usage, startMs: number): Measure => ({
    ...usage,
    startedMs: startMs,
    cpuNanoSeconds: Math.round((usage.cpuNanoCores * Math.max(0, nowMs - startMs)) / 1000),
  })
  const measured = Array.from(pods).flatMap(({ pod, lives }): MeasuredPod[] => {
    const containers = lives.filter(isRunning).map(({ spec, run }) => ({
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
  readonly pods: Iterable<{ readonly pod: Pod; readonly lives: readonly ContainerRecord[] }>
}

/** Of the node itself, besides pods. */
const OWN: Usage = { cpuNanoCores: 20_000_000, memoryBytes: 200 * 2 ** 20 }
