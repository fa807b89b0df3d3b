/** Iterates over the containers of a pod, in start order. */
import type { Container, EphemeralContainer, PodSpec } from '#apis/core/v1.ts'
import { fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

export type ContainerRole = 'init' | 'regular' | 'ephemeral'

export interface PlacedContainer {
  readonly container: Container | EphemeralContainer
  /** The path: `spec.initContainers[0]`. */
  readonly path: FieldPath
  readonly role: ContainerRole
}

const lists = [
  ['initContainers', 'init'],
  ['containers', 'regular'],
  ['ephemeralContainers', 'ephemeral'],
] as const

/** Init, regular and ephemeral containers. Not copies: the caller may change them. */
export function containersOf(spec: PodSpec, path: FieldPath = fieldPath('spec')): PlacedContainer[] {
  return lists.flatMap(([name, role]) =>
    (spec[name] ?? []).map((container, at) => ({ container, path: path.child(name).index(at), role })),
  )
}

/** A sidecar: an init container that runs as long as the pod. */
export function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always'
}

export function isWindows({ os }: PodSpec): boolean {
  return os?.name === 'windows'
}
