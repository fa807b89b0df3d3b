/** The type of a violation of the Pod Security Standards, and its text. */
import type { Container, EphemeralContainer, PodSecurityContext, PodSpec, SecurityContext } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import type { ObjectMeta } from '#meta/object.ts'

export interface Violation {
  readonly reason: string
  readonly detail: string
}

/** Undefined: no violation. */
export type Check = (spec: PodSpec, metadata: Pick<ObjectMeta, 'annotations'>) => Violation | undefined

export type AnyContainer = Container | EphemeralContainer

/** In the order of violation texts. */
export function allContainers(spec: PodSpec): AnyContainer[] {
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  return [...initContainers, ...(containers ?? []), ...ephemeralContainers]
}

export function quoted(items: readonly string[]): string {
  return items.length === 0 ? '' : `"${items.join('", "')}"`
}

export function plural(one: string, many: string, count: number): string {
  return count === 1 ? one : many
}

/** `container "a"`, `containers "a", "b"`. */
export function named(containers: readonly AnyContainer[]): string {
  return `${plural('container', 'containers', containers.length)} ${quoted(containers.map(({ name }) => name))}`
}

/** Without duplicates, in order. */
export function distinct(items: Iterable<string>): string[] {
  return [...new Set(items)].sort(compareText)
}

/** The subjects of a rule that applies to pods and containers: `pod and container "a"`. */
export interface Setters {
  readonly text: string
  readonly contexts: readonly (PodSecurityContext | SecurityContext)[]
}

/** Undefined if there are none. */
export function settersOf(
  spec: PodSpec,
  breaks: (context: PodSecurityContext | SecurityContext) => boolean,
): Setters | undefined {
  const pod = spec.securityContext
  const podBreaks = pod !== undefined && breaks(pod)
  const containers = allContainers(spec).filter(({ securityContext }) => securityContext && breaks(securityContext))
  if (!podBreaks && containers.length === 0) return undefined
  return {
    text: [...(podBreaks ? ['pod'] : []), ...(containers.length > 0 ? [named(containers)] : [])].join(' and '),
    contexts: [...(podBreaks ? [pod] : []), ...containers.flatMap(({ securityContext }) => securityContext ?? [])],
  }
}
