/** Volume plugin `emptyDir`: a directory with the lifetime of its pod. */
import type { Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import {
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantitySign,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'
import { podLimits } from '#model/pod-resources.ts'
import type { ResourceList } from '#model/resource-lists.ts'

import type { MemoryMount, VolumePlugin } from '../volume-plugin.ts'

export const emptyDir: VolumePlugin = {
  name: 'kubernetes.io/empty-dir',
  volume: 'emptyDir',
  isContent: false,
  usage: 'files',
  async plan({ pod, volume }, sources) {
    const { medium = '', sizeLimit } = volume.emptyDir ?? {}
    if (medium === '') return { at: 'pod' }
    if (medium === 'Memory') return { at: 'pod', memory: inMemory(pod, sources.allocatable(), sizeLimit) }
    if (medium === HUGE_PAGES || medium.startsWith(`${HUGE_PAGES}-`)) {
      return { at: 'pod', memory: { type: 'hugetlbfs', options: [`pagesize=${pageSize(pod, medium)}`] } }
    }
    throw new Error(`unknown storage medium ${goQuote(medium)}`)
  },
}

/** Size limit of a memory-backed directory: the smallest of the node's, the pod's and its own. */
export function inMemory(pod: Pod, allocatable: ResourceList, sizeLimit?: string): MemoryMount {
  const { memory } = allocatable
  let size = memory === undefined ? undefined : parseQuantity(memory)
  for (const limit of [podMemory(pod), sizeLimit === undefined ? undefined : parseQuantity(sizeLimit)]) {
    if (limit === undefined || quantitySign(limit) <= 0) continue
    if (size === undefined || compareQuantities(limit, size) <= 0) size = limit
  }
  return { type: 'tmpfs', options: size === undefined ? [] : [`size=${quantityValue(size)}`] }
}

/** Undefined when a container has no limit, unless the pod has one. */
function podMemory(pod: Pod): Quantity | undefined {
  const { containers, initContainers = [], resources } = pod.spec
  const isLimited = [...containers, ...initContainers].every((each) => each.resources?.limits?.['memory'] !== undefined)
  if (!isLimited && resources?.limits?.['memory'] === undefined) return undefined
  return podLimits(pod).get('memory')
}

const HUGE_PAGES = 'HugePages'
const HUGE_PAGES_RESOURCE = 'hugepages-'

/** The page size of the medium, or the only size that the pod requests: `2Mi`. */
function pageSize({ spec }: Pod, medium: string): string {
  const wanted = medium === HUGE_PAGES ? undefined : parseQuantity(medium.slice(HUGE_PAGES.length + 1))
  const { containers, initContainers = [], resources } = spec
  const requests = [resources?.requests, ...[...containers, ...initContainers].map((each) => each.resources?.requests)]
  const requested = requests
    .flatMap((list) => Object.keys(list ?? {}))
    .filter((name) => name.startsWith(HUGE_PAGES_RESOURCE))
    .map((name) => parseQuantity(name.slice(HUGE_PAGES_RESOURCE.length)))
  const fitting = requested.filter((size) => wanted === undefined || compareQuantities(size, wanted) === 0)
  const sizes = new Set(fitting.map(quantityText))
  if (sizes.size > 1) throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`)
  const [size] = sizes
  if (size === undefined) {
    throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`)
  }
  return size
}
