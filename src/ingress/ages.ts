/** Sorts Ingresses by age, the oldest first, independent of the order of events. Pure. */
import type { Ingress } from '#apis/networking/v1.ts'

/** By creation time, then by namespace and name. */
export function oldestFirst(ingresses: readonly Ingress[]): readonly Ingress[] {
  return ingresses.toSorted(byAge)
}

function byAge(one: Ingress, other: Ingress): number {
  const [a, b] = [ageOf(one), ageOf(other)]
  if (a === b) return 0
  return a < b ? -1 : 1
}

function ageOf({ metadata: { creationTimestamp, namespace, name } }: Ingress): string {
  return `${creationTimestamp ?? ''} ${namespace}/${name}`
}
