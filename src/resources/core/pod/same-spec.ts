/** Compares two pod specs semantically: absent and empty fields are equal, and quantities are compared by value. */
import type { Container, PodSpec } from '#apis/core/v1.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantityText } from '#meta/quantity.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

/** Quantities are compared by value: `1Gi` equals `1073741824`. */
export function sameSpec(a: PodSpec, b: PodSpec): boolean {
  // Usually they are identical.
  return semanticEqual(a, b) || semanticEqual(plain(a), plain(b))
}

export function sameContainer(a: Container, b: Container): boolean {
  return sameSpec({ containers: [a] }, { containers: [b] })
}

/** A copy with canonical quantities. */
function plain(spec: PodSpec): PodSpec {
  const copy = deepCopy(spec)
  const volumes = copy.volumes ?? []
  const owners = [
    copy.resources,
    ...containersOf(copy).map(({ container }) => container.resources),
    ...volumes.map(({ ephemeral }) => ephemeral?.volumeClaimTemplate?.spec.resources),
  ]
  for (const list of [copy.overhead, ...owners.flatMap((one) => [one?.limits, one?.requests])]) {
    for (const [name, amount] of Object.entries(list ?? {})) if (list !== undefined) list[name] = plainAmount(amount)
  }
  for (const { emptyDir } of volumes) {
    if (emptyDir?.sizeLimit !== undefined) emptyDir.sizeLimit = plainAmount(emptyDir.sizeLimit)
  }
  return copy
}

function plainAmount(amount: string): string {
  const { unscaled, scale } = parseQuantity(amount)
  return quantityText({ unscaled, scale, format: 'DecimalSI' })
}
