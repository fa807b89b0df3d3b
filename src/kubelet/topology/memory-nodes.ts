/** Reads the NUMA nodes of the machine: their memory and huge pages. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { quantityOf, quantityText } from '#meta/quantity.ts'

export interface MemoryNode {
  readonly id: number
  /** Total memory, including huge pages. */
  readonly memoryBytes: number
  /** Bytes by type: `hugepages-2Mi`. */
  readonly hugePages: ReadonlyMap<string, number>
}

/** Sorted by number. A machine without NUMA information has one node with `memoryBytes`. */
export async function readMemoryNodes(memoryBytes: number, root = '/sys/devices/system/node'): Promise<MemoryNode[]> {
  const names = (await readdir(root).catch(() => [])).filter((name) => /^node\d+$/.test(name))
  const nodes = await Promise.all(
    names.map(async (name) => ({
      id: Number(name.slice('node'.length)),
      memoryBytes: memoryOf(await readFile(join(root, name, 'meminfo'), 'utf8')),
      hugePages: await hugePagesIn(join(root, name, 'hugepages')),
    })),
  )
  if (nodes.length === 0) return [{ id: 0, memoryBytes, hugePages: await hugePagesIn('/sys/kernel/mm/hugepages') }]
  return nodes.sort((a, b) => a.id - b.id)
}

/** `Node 0 MemTotal: 24682416 kB`. Pure. */
export function memoryOf(meminfo: string): number {
  return Number(/MemTotal:\s+(\d+) kB/.exec(meminfo)?.[1] ?? 0) * 1024
}

async function hugePagesIn(dir: string): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const name of await readdir(dir).catch(() => [])) {
    const kB = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0)
    const count = Number(await readFile(join(dir, name, 'nr_hugepages'), 'utf8').catch(() => '0'))
    if (kB > 0) found.set(hugePagesName(kB), count * kB * 1024)
  }
  return found
}

/** `hugepages-2Mi` for 2048. Pure. */
export const hugePagesName = (kB: number): string => `hugepages-${quantityText(quantityOf(kB * 1024, 'BinarySI'))}`
