/**
 * Binds CEL's type parameters while the checker resolves calls, by cel-go's unification. A failed attempt leaves no
 * trace.
 */
import { type CelType, DYN, isSameType, type ParameterType, parametersOf, unwrap, withParameters } from '../type.ts'

export class Substitution {
  readonly #bound = new Map<string, CelType>()
  /** The previous value of each binding since the attempt began. */
  readonly #undo: (readonly [name: string, before: CelType | undefined])[] = []

  /** Whether a value of one type can be used as the other; if so, parameters are bound as that needs. */
  isAssignable(to: CelType, from: CelType): boolean {
    return this.areAssignable([to], [from])
  }

  /** Of all pairs, or nothing is bound. */
  areAssignable(left: readonly CelType[], right: readonly CelType[]): boolean {
    this.#undo.length = 0
    if (this.#eachAssignable(left, right)) return true
    for (const [name, before] of this.#undo.reverse()) {
      if (before === undefined) this.#bound.delete(name)
      else this.#bound.set(name, before)
    }
    return false
  }

  /** With all known parameters replaced; unknown ones stay, or become dyn. */
  apply(type: CelType, unknown: 'keep' | 'dyn' = 'keep'): CelType {
    if (type.kind === 'parameter') {
      const bound = this.#bound.get(type.name)
      if (bound !== undefined) return this.apply(bound, unknown)
      return unknown === 'dyn' ? DYN : type
    }
    return withParameters(type, (inner) => this.apply(inner, unknown))
  }

  #eachAssignable(left: readonly CelType[], right: readonly CelType[]): boolean {
    return left.length === right.length && left.every((type, i) => this.#assign(type, right[i] as CelType))
  }

  #assign(left: CelType, right: CelType): boolean {
    if (right.kind === 'parameter') {
      const outcome = this.#bind(right, left)
      if (outcome !== 'unbound') return outcome === 'fits'
    }
    if (left.kind === 'parameter') return this.#bind(left, right) === 'fits'
    if (isDynOrError(left) || isDynOrError(right)) return true
    if (left.kind === 'null') return isNullable(right)
    if (right.kind === 'null') return isNullable(left)
    const [a, b] = [unwrap(left), unwrap(right)]
    if (a.kind !== b.kind) return false
    switch (a.kind) {
      case 'type':
        return true
      case 'opaque':
      case 'object':
        return a.name === (b as typeof a).name && this.#eachAssignable(parametersOf(a), parametersOf(b))
      default:
        return this.#eachAssignable(parametersOf(a), parametersOf(b))
    }
  }

  /** `unbound`: it stays so, because it occurs in what it would stand for. */
  #bind(parameter: ParameterType, type: CelType): 'fits' | 'differs' | 'unbound' {
    if (isSameType(type, parameter)) return 'fits'
    const bound = this.#bound.get(parameter.name)
    if (bound === undefined) {
      if (this.#occursIn(parameter, type)) return 'unbound'
      this.#set(parameter, type)
      return 'fits'
    }
    if (isSameType(type, bound)) return 'fits'
    if (!this.#assign(type, bound)) return 'differs'
    const general = moreGeneral(type, bound)
    if (!this.#occursIn(parameter, general)) this.#set(parameter, general)
    return 'fits'
  }

  #set(parameter: ParameterType, type: CelType): void {
    this.#undo.push([parameter.name, this.#bound.get(parameter.name)])
    this.#bound.set(parameter.name, type)
  }

  #occursIn(parameter: ParameterType, type: CelType): boolean {
    if (type.kind !== 'parameter') return parametersOf(type).some((inner) => this.#occursIn(parameter, inner))
    if (type.name === parameter.name) return true
    const bound = this.#bound.get(type.name)
    return bound !== undefined && this.#occursIn(parameter, bound)
  }
}

/** The more general of two assignable types. */
export function moreGeneral(a: CelType, b: CelType): CelType {
  return isMoreGeneral(a, b) ? a : b
}

function isMoreGeneral(a: CelType, b: CelType): boolean {
  if (a.kind === 'dyn' || a.kind === 'parameter') return true
  if (b.kind === 'dyn' || b.kind === 'parameter') return false
  if (a.kind === 'type') return b.kind === 'type'
  const inner = parametersOf(a)
  if (inner.length === 0) return isSameType(a, b)
  const others = parametersOf(b)
  if (a.kind !== b.kind || inner.length !== others.length) return false
  if (a.kind === 'opaque' && a.name !== (b as typeof a).name) return false
  return inner.every((type, i) => isMoreGeneral(type, others[i] as CelType))
}

function isDynOrError(type: CelType): boolean {
  return type.kind === 'dyn' || type.kind === 'error'
}

function isNullable({ kind }: CelType): boolean {
  return (
    kind === 'null' ||
    kind === 'wrapper' ||
    kind === 'opaque' ||
    kind === 'object' ||
    kind === 'timestamp' ||
    kind === 'duration'
  )
}
