/** Draws random choices from a seed for generated test cases, and lists the names that the cases share. */
import type { Random } from '#lib/random.ts'

export type Loose<T> = T extends (infer U)[] ? Loose<U>[] : T extends object ? { [K in keyof T]?: Loose<T[K]> } : T

export const ZONE = 'topology.kubernetes.io/zone'
export const HOST = 'kubernetes.io/hostname'
export const NAMESPACES: readonly string[] = ['one', 'two']

export class Draw {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  below(bound: number): number {
    return this.#random.int(bound)
  }

  chance(of: number): boolean {
    return this.#random.float() < of
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.#random.int(choices.length)] as T
  }

  /** Sometimes what is made, sometimes nothing. */
  maybe<T extends object>(of: number, make: () => T): T | object {
    return this.chance(of) ? make() : {}
  }
}
