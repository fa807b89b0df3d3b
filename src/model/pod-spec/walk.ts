/** Going through the containers of a pod, in the order in which they start. */
import type { Container, EphemeralContainer, PodSpec } from '#apis/core/v1.ts'
import { child, index } from '#meta/validation/field-error.ts'

export type ContainerRole = 'init' | 'regular' | 'ephemeral'

export interface PlacedContainer {
  readonly container: Container | EphemeralContainer
  /** Where it is: `spec.initContainers[0]`. */
  readonly path: string
  readonly role: ContainerRole
}

const lists = [
  ['initContainers', 'init'],
  ['containers', 'regular'],
  ['ephemeralContainers', 'ephemeral'],
] as const

/** Init containers, regular ones, ephemeral ones. Not a copy: what is handed out may be changed. */
export function containersOf(spec: PodSpec, path = 'spec'): PlacedContainer[] {
  return lists.flatMap(([name, role]) =>
    (spec[name] ?? []).map((container, at) => ({ container, path: index(child(path, name), at), role })),
  )
}

/** An init container that runs as long as the pod: a sidecar. */
export function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always'
}

export function isWindows({ os }: PodSpec): boolean {
  return os?.name === 'windows'
}
