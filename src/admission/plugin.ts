/** The interface of an admission plugin: the resources it handles, mutation and validation. */
import type { Attributes, Operation } from '#apiserver/registry/admission.ts'

export interface AdmissionPlugin {
  /** Upstream's name, for --enable-admission-plugins and metrics. */
  readonly name: string
  readonly on: readonly Operation[]
  /**
   * `pods`, `deployments.apps`, `pods/binding`; absent: everything. A resource without a subresource matches only
   * itself.
   */
  readonly resources?: readonly string[]
  /** Modifies `attributes.object` in place; throws StatusError to refuse. */
  mutate?(attributes: Attributes, round: Round): void | Promise<void>
  /** Throws StatusError to refuse; modifies nothing. */
  validate?(attributes: Attributes): void | Promise<void>
}

/**
 * The rounds of mutation: a first one, and a second and last one if a plugin requests it because it changed an object
 * that others had already seen.
 */
export interface Round {
  readonly isSecond: boolean
  /** Requests a second round; no effect in the second one. */
  askAgain(): void
  /** State that a plugin keeps from the first round for the second, made on demand. */
  memory<T>(owner: object, make: () => T): T
}

/** For one write. */
export class Rounds implements Round {
  isSecond = false
  isRequested = false
  readonly #memories = new Map<object, unknown>()

  askAgain(): void {
    this.isRequested = true
  }

  memory<T>(owner: object, make: () => T): T {
    if (!this.#memories.has(owner)) this.#memories.set(owner, make())
    return this.#memories.get(owner) as T
  }
}

export function defineAdmission(plugin: AdmissionPlugin): AdmissionPlugin {
  return plugin
}

/** True if the plugin handles this write. */
export function concerns({ on, resources }: AdmissionPlugin, { operation, kind, subresource }: Attributes): boolean {
  if (!on.includes(operation)) return false
  if (resources === undefined) return true
  const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
  return resources.includes(subresource === '' ? name : `${name}/${subresource}`)
}
