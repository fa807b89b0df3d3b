/**
 * What containers that never run use of their node: half of what they ask for, or what annotations say. Pure, so that
 * whoever serves metrics can ask without a kubelet.
 */
import type { Pod } from '#apis/core/v1.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import { ANNOTATION_PREFIX } from './fault.ts'

export interface Usage {
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

export function sumOf(usages: Iterable<Usage>): Usage {
  let [cpuNanoCores, memoryBytes] = [0, 0]
  for (const usage of usages) {
    cpuNanoCores += usage.cpuNanoCores
    memoryBytes += usage.memoryBytes
  }
  return { cpuNanoCores, memoryBytes }
}
