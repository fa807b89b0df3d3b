/** Selects the default class, such as a StorageClass: the newest of the classes that are marked as default. */
import { compareText } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

/** `annotations`: any of these with the value `true` marks a class. */
export function newestDefault<T extends KubeObject>(
  classes: readonly T[],
  annotations: readonly string[],
): T | undefined {
  const marked = classes.filter(({ metadata }) => annotations.some((name) => metadata.annotations?.[name] === 'true'))
  return marked.sort(newerFirst)[0]
}

function newerFirst(a: KubeObject, b: KubeObject): number {
  return madeMs(b) - madeMs(a) || compareText(a.metadata.name ?? '', b.metadata.name ?? '')
}

function madeMs({ metadata }: KubeObject): number {
  const { creationTimestamp } = metadata
  return creationTimestamp === undefined || creationTimestamp === null ? 0 : epochMsOf(creationTimestamp)
}
