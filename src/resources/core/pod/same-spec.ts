/** Whether two pod specs mean the same, and what differs when they do not. */
import type { Container, PodSpec } from '#apis/core/v1.ts'
import { goJson } from '#meta/go-text.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantityText } from '#meta/quantity.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

/** Differences shown before the rest is only counted. */
const MAX_SHOWN = 16

/** Amounts are compared by value: `1Gi` and `1073741824` are the same. */
export function sameSpec(a: PodSpec, b: PodSpec): boolean {
  // Mostly they are the same to the letter.
  return semanticEqual(a, b) || semanticEqual(plain(a), plain(b))
}

export function sameContainer(a: Container, b: Container): boolean {
  return sameSpec({ containers: [a] }, { containers: [b] })
}

/** A copy with all amounts written in one way. */
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

/** One line for each difference: `spec.hostname: "a" -> "b"`. */
export function differencesText(path: string, old: unknown, next: unknown): string {
  const lines = differences(path, old, next)
  const shown = lines.slice(0, MAX_SHOWN)
  if (lines.length > shown.length) shown.push(`and ${lines.length - shown.length} more`)
  return shown.map((line) => `  ${line}`).join('\n')
}

function differences(path: string, old: unknown, next: unknown): string[] {
  if (semanticEqual(old, next)) return []
  if (!isTree(old) || !isTree(next) || Array.isArray(old) !== Array.isArray(next)) {
    return [`${path}: ${valueText(old)} -> ${valueText(next)}`]
  }
  const names = new Set([...Object.keys(old), ...Object.keys(next)])
  const join = (name: string): string => (Array.isArray(old) ? `${path}[${name}]` : `${path}.${name}`)
  return [...names].flatMap((name) => differences(join(name), fieldOf(old, name), fieldOf(next, name)))
}

type Tree = Readonly<Record<string, unknown>>

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null
}

function fieldOf(tree: Tree, name: string): unknown {
  return Object.hasOwn(tree, name) ? tree[name] : undefined
}

function valueText(value: unknown): string {
  return value === undefined ? '<unset>' : goJson(value)
}
