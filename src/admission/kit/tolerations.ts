/**
 * Merges and compares sets of tolerations, and decides whether one toleration includes another. Every operation takes
 * linear time. Upstream's pkg/util/tolerations, v1.36.
 */
import type { Toleration } from '#apis/core/v1.ts'
import { deepCopy } from '#meta/object.ts'

/** Tolerations by key, operator, value and effect; of those that differ only in seconds, the longest counts. */
export class TolerationSet {
  readonly #secondsByShape = new Map<string, number>()
  readonly #exact = new Set<string>()

  constructor(tolerations: Iterable<Toleration> = []) {
    for (const toleration of tolerations) this.add(toleration)
  }

  add(toleration: Toleration): void {
    const { key = '', operator = '', value = '', effect = '' } = toleration
    this.#exact.add(exactShape(toleration))
    const shape = operator === 'Exists' ? existsShape(key, effect) : valueShape({ key, operator, value, effect })
    const seconds = effect === 'NoExecute' ? secondsOf(toleration) : Infinity
    this.#secondsByShape.set(shape, Math.max(seconds, this.#secondsByShape.get(shape) ?? -Infinity))
  }

  /** True if a member tolerates everything that `toleration` does, including an equal one. */
  includes(toleration: Toleration): boolean {
    return this.#exact.has(exactShape(toleration)) || this.#wider(toleration, (own, wanted) => own >= wanted)
  }

  /** True if a member other than an equal one tolerates everything that `toleration` does. */
  includesMoreThan(toleration: Toleration): boolean {
    return this.#wider(toleration, (own, wanted, isSameShape) => (isSameShape ? own > wanted : own >= wanted))
  }

  #wider(toleration: Toleration, isEnough: (own: number, wanted: number, isSameShape: boolean) => boolean): boolean {
    const { effect = '' } = toleration
    return widerShapes(toleration).some(([shape, shapeEffect, isSameShape]) => {
      const own = this.#secondsByShape.get(shape)
      const wanted = shapeEffect === 'NoExecute' && effect === 'NoExecute' ? secondsOf(toleration) : Infinity
      return own !== undefined && isEnough(own, wanted, isSameShape)
    })
  }
}

/** Merges both lists. Drops a toleration that another one includes; of equal ones the first stays. Returns copies. */
export function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second]
  const later = new TolerationSet()
  const isRedundant: boolean[] = []
  for (let at = all.length - 1; at >= 0; at--) {
    const toleration = all[at] as Toleration
    isRedundant[at] = later.includesMoreThan(toleration)
    later.add(toleration)
  }
  const kept = new TolerationSet()
  return all.flatMap((toleration, at) => {
    if (isRedundant[at] === true || kept.includes(toleration)) return []
    kept.add(toleration)
    return [deepCopy(toleration)]
  })
}

/** Without a limit, the pod tolerates the taint for ever. */
function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Infinity
}

type Shape = readonly [shape: string, effect: string, isSameShape: boolean]

/**
 * Keys of all tolerations that include this one. An empty effect matches all effects, an empty key with Exists all
 * keys. Only the operator Equal is included by a toleration with a value.
 */
function widerShapes({ key = '', operator = '', value = '', effect = '' }: Toleration): readonly Shape[] {
  return [...new Set([effect, ''])].flatMap((wide) => {
    const isSameEffect = wide === effect
    const exists = [...new Set([key, ''])].map((name): Shape => [
      existsShape(name, wide),
      wide,
      isSameEffect && name === key && operator === 'Exists',
    ])
    if (operator !== 'Equal') return exists
    const valued = ['Equal', ''].map((one): Shape => {
      const shape = valueShape({ key, operator: one, value, effect: wide })
      return [shape, wide, isSameEffect && one === 'Equal']
    })
    return [...exists, ...valued]
  })
}

function existsShape(key: string, effect: string): string {
  return JSON.stringify([key, effect])
}

function valueShape({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect])
}

function exactShape(toleration: Toleration): string {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
  return JSON.stringify([key, operator, value, effect, tolerationSeconds ?? null])
}
