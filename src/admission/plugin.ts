/** An admission plugin: what it looks at, what it changes, what it refuses. */
import type { Attributes, Operation } from '#apiserver/registry/admission.ts'

export interface AdmissionPlugin {
  /** Upstream's name, for --enable-admission-plugins and metrics. */
  readonly name: string
  readonly on: readonly Operation[]
  /** `pods`, `deployments.apps`, `pods/binding`; absent: everything. A resource without part means itself only. */
  readonly resources?: readonly string[]
  /** Changes `attributes.object` in place; throws StatusError to refuse. */
  mutate?(attributes: Attributes, round: Round): void | Promise<void>
  /** Throws StatusError to refuse; changes nothing. */
  validate?(attributes: Attributes): void | Promise<void>
}

/**
 * Plugins that change objects are asked in a first round and, when one of them wants it because it changed what others
 * have looked at before, in a second and last one.
 */
export interface Round {
  readonly isSecond: boolean
  /** Asks for a second round; without effect in it. */
  askAgain(): void
  /** What a plugin keeps from the first round for the second: made when it is first asked for. */
  memory<T>(owner: object, make: () => T): T
}

/** For one write. */
export class Rounds implements Round {
  isSecond = false
  isAsked = false
  readonly #memories = new Map<object, unknown>()

  askAgain(): void {
    this.isAsked = true
  }

  memory<T>(owner: object, make: () => T): T {
    if (!this.#memories.has(owner)) this.#memories.set(owner, make())
    return this.#memories.get(owner) as T
  }
}

export function defineAdmission(plugin: AdmissionPlugin): AdmissionPlugin {
  return plugin
}

/** Whether the plugin has anything to say about this write. */
export function concerns({ on, resources }: AdmissionPlugin, { operation, kind, subresource }: Attributes): boolean {
  if (!on.includes(operation)) return false
  if (resources === undefined) return true
  const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
  return resources.includes(subresource === '' ? name : `${name}/${subresource}`)
}
