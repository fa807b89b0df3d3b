/** emptyDir: a directory that lives as long as its pod. */
import type { Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { compareQuantities, parseQuantity, type Quantity, quantitySign, quantityValue } from '#meta/quantity.ts'
import { podLimits } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import type { VolumePlugin } from '../volume-plugin.ts'

export const emptyDir: VolumePlugin = {
  name: 'kubernetes.io/empty-dir',
  volume: 'emptyDir',
  isContent: false,
  async plan({ pod, volume }, sources) {
    const { medium = '', sizeLimit } = volume.emptyDir ?? {}
    if (medium === '') return { at: 'pod', inMemory: false, sizeBytes: 0 }
    if (medium === 'Memory') {
      return { at: 'pod', inMemory: true, sizeBytes: memoryBytes(pod, sources.allocatable(), sizeLimit) }
    }
    if (medium.startsWith('HugePages')) {
      throw new Error(`medium ${medium}: huge pages as a volume are not supported by this kubelet`)
    }
    throw new Error(`unknown storage medium ${goQuote(medium)}`)
  },
}

/** How large a directory in memory may become: as large as the node, its pod or its own limit allow, whichever is least. */
export function memoryBytes(pod: Pod, allocatable: ResourceList, sizeLimit?: string): number {
  const { memory } = allocatable
  let size = memory === undefined ? undefined : parseQuantity(memory)
  for (const limit of [podMemory(pod), sizeLimit === undefined ? undefined : parseQuantity(sizeLimit)]) {
    if (limit === undefined || quantitySign(limit) <= 0) continue
    if (size === undefined || compareQuantities(limit, size) <= 0) size = limit
  }
  return size === undefined ? 0 : quantityValue(size)
}

/** Undefined as long as one container has no limit, unless the pod itself has one. */
function podMemory(pod: Pod): Quantity | undefined {
  const { containers, initContainers = [], resources } = pod.spec
  const isLimited = [...containers, ...initContainers].every((each) => each.resources?.limits?.['memory'] !== undefined)
  if (!isLimited && resources?.limits?.['memory'] === undefined) return undefined
  return podLimits(pod).get('memory')
}
