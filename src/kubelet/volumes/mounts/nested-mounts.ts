/**
 * Finds the mount points of volumes inside other volumes. The kubelet creates them, because containers cannot create
 * them in a read-only volume. Pure.
 */
import { normalize } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'

/** Paths below the volume, without those inside another of them. */
export function nestedMounts({ spec }: Pod, volume: string): string[] {
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  const nested = [...initContainers, ...containers, ...ephemeralContainers].flatMap(({ volumeMounts = [] }) => {
    const all = volumeMounts.map(({ name, mountPath }) => ({ name, path: clean(mountPath) }))
    const paths = all.map(({ path }) => path).sort()
    return all.filter(({ name }) => name === volume).flatMap(({ path }) => inside(path, paths))
  })
  return [...new Set(nested)]
}

const clean = (path: string): string => normalize(path).replace(/(.)\/$/, '$1')

function inside(parent: string, paths: readonly string[]): string[] {
  if (parent.startsWith('../')) throw new Error(`invalid container mount point ${parent}`)
  const found: string[] = []
  for (const path of paths) {
    if (path.startsWith(`${parent}/`) && !found.some((each) => path.startsWith(`${each}/`))) found.push(path)
  }
  return found.map((path) => path.slice(parent.length + 1))
}
