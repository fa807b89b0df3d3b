/** Reads the CPUs of the machine and their topology. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { parseCpuSet } from '../configuration/cpu-set.ts'

export interface Cpu {
  readonly id: number
  /** Siblings share a core. */
  readonly core: string
  readonly socket: number
  /** NUMA node. */
  readonly node: number
}

/** Online CPUs, sorted by number. */
export async function readCpus(root = '/sys/devices/system'): Promise<Cpu[]> {
  const read = (path: string): Promise<string> =>
    readFile(join(root, path), 'utf8').then(
      (text) => text.trim(),
      () => '',
    )
  const nodes = (await readdir(join(root, 'node')).catch(() => [])).filter((name) => /^node\d+$/.test(name))
  const nodeOf = new Map<number, number>()
  for (const name of nodes) {
    for (const id of cpuIds(await read(`node/${name}/cpulist`))) nodeOf.set(id, Number(name.slice('node'.length)))
  }
  const ids = cpuIds(await read('cpu/online'))
  return Promise.all(
    ids.map(async (id) => {
      const socket = Number(await read(`cpu/cpu${id}/topology/physical_package_id`))
      const core = await read(`cpu/cpu${id}/topology/core_id`)
      return { id, core: `${socket}/${core === '' ? id : core}`, socket, node: nodeOf.get(id) ?? 0 }
    }),
  )
}

/** Empty for invalid text. Pure. */
export function cpuIds(text: string): number[] {
  const parsed = parseCpuSet(text)
  return typeof parsed === 'string' ? [] : [...parsed].sort((a, b) => a - b)
}

/** `0-3,8`. Pure. */
export function cpuSetText(ids: Iterable<number>): string {
  const sorted = [...ids].sort((a, b) => a - b)
  const ranges: [first: number, last: number][] = []
  for (const id of sorted) {
    const range = ranges.at(-1)
    if (range !== undefined && range[1] === id - 1) range[1] = id
    else ranges.push([id, id])
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',')
}
