/**
 * Paths from a variable to a part of an expression, such as `self`, `items` and `@items`. The estimator finds schema
 * limits by path.
 *
 * As in upstream, two appends to one path may overwrite each other, because they share a slice; the estimates depend on
 * that.
 */
import { RESERVED_WORDS } from '../syntax/lexer.ts'
import { type CelType, optionalValueOf } from '../type.ts'

export class FieldPath {
  readonly #steps: string[]
  readonly #length: number
  readonly #capacity: number

  private constructor(steps: string[], length: number, capacity: number) {
    this.#steps = steps
    this.#length = length
    this.#capacity = capacity
  }

  static of(step: string): FieldPath {
    return new FieldPath([step], 1, 1)
  }

  append(step: string): FieldPath {
    const isFull = this.#length === this.#capacity
    const steps = isFull ? this.#steps.slice(0, this.#length) : this.#steps
    steps[this.#length] = step
    return new FieldPath(steps, this.#length + 1, isFull ? this.#capacity * 2 : this.#capacity)
  }

  /** The most that can be there, if the type of the variable that the path begins with bounds it. */
  maxSize(rootOf: (variable: string) => CelType | undefined): number | undefined {
    let type = rootOf(this.#steps[0] as string)
    for (let i = 1; i < this.#length && type !== undefined; i++) type = step(type, this.#steps[i] as string)
    const found = type && present(type)
    return found !== undefined && 'maxSize' in found ? found.maxSize : undefined
  }
}

function step(from: CelType, name: string): CelType | undefined {
  const type = present(from)
  switch (name) {
    case '@items':
    case '@values':
      return type.kind === 'list' ? type.element : type.kind === 'map' ? type.value : undefined
    case '@keys':
      return type.kind === 'map' ? type.key : undefined
    default:
      if (type.kind === 'map') return type.boundsFields === true ? type.value : undefined
      // Upstream does not find what is written plainly although its name is reserved.
      return type.kind === 'object' && !RESERVED_WORDS.has(name) ? type.field(name)?.type : undefined
  }
}

const present = (type: CelType): CelType => optionalValueOf(type) ?? type
