/** Evaluates the device selectors of classes and claims. It caches the result of each expression for each device. */
import type { Device } from '#apis/resource/v1.ts'
import { compileSelector, matches } from '#model/dra/selector.ts'

import type { OfferedDevice } from './inventory.ts'

/** The maximum number of cached expressions. */
const KEPT = 256
const KEPT_OF_DEVICE = 32

type CompiledSelector = ReturnType<typeof compileSelector>

export class Selection {
  readonly #compiled = new Map<string, CompiledSelector>()
  readonly #answers = new WeakMap<Device, Map<string, boolean | Error>>()

  /** Throws upstream's text, after `CEL `. */
  matches(expression: string, { device, slice }: OfferedDevice): boolean {
    const known = this.#answers.get(device) ?? new Map<string, boolean | Error>()
    this.#answers.set(device, known)
    let answer = known.get(expression)
    if (answer === undefined) {
      answer = this.#ask(expression, device, slice.spec.driver)
      if (known.size >= KEPT_OF_DEVICE) known.clear()
      known.set(expression, answer)
    }
    if (typeof answer === 'boolean') return answer
    throw answer
  }

  #ask(expression: string, device: Device, driver: string): boolean | Error {
    const compiled = this.#compile(expression)
    if (compiled.fault !== undefined) return new Error(`compile error: ${compiled.fault.detail}`)
    try {
      return matches(compiled, { ...device, driver })
    } catch (error) {
      return new Error(`runtime error: ${(error as Error).message}`)
    }
  }

  #compile(expression: string): CompiledSelector {
    const known = this.#compiled.get(expression)
    if (known !== undefined) return known
    if (this.#compiled.size >= KEPT) this.#compiled.clear()
    const made = compileSelector(expression)
    this.#compiled.set(expression, made)
    return made
  }
}
