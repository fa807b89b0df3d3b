/** Watches the stored policies and their bindings. A policy is compiled on first use. */
import type { MatchResources, ParamKind, ParamRef } from '#apis/admissionregistration/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { follow, joinFollowings, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { compareText } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'

import { createCriteria, type Criteria } from '../matching/matcher.ts'

/** The common members of both kinds of policies. */
export interface Policy extends KubeObject {
  readonly spec: {
    readonly failurePolicy?: string
    readonly paramKind?: ParamKind
    readonly matchConstraints?: MatchResources
  }
}

/** The common members of both kinds of bindings. */
export interface Binding extends KubeObject {
  readonly spec: {
    readonly policyName?: string
    readonly paramRef?: ParamRef
    readonly matchResources?: MatchResources
  }
}

export interface BoundPolicy<P extends Policy, B extends Binding, C> {
  readonly policy: P
  readonly name: string
  readonly criteria: Criteria
  readonly compiled: () => C
  /** By name; at least one. */
  readonly bindings: readonly BindingInUse<B>[]
}

export interface BindingInUse<B extends Binding> {
  readonly binding: B
  readonly name: string
  readonly criteria: Criteria
}

interface KnownPolicy<P, C> {
  readonly policy: P
  readonly criteria: Criteria
  readonly compiled: () => C
}

export class PolicySet<P extends Policy, B extends Binding, C> {
  readonly #compile: (policy: P) => C
  readonly #policies = new Map<string, KnownPolicy<P, C>>()
  readonly #bindings = new Map<string, BindingInUse<B>>()
  #bound: readonly BoundPolicy<P, B, C>[] | undefined

  constructor(compile: (policy: P) => C) {
    this.#compile = compile
  }

  /** Those with bindings, by name. A binding without its policy has no effect. */
  get bound(): readonly BoundPolicy<P, B, C>[] {
    return (this.#bound ??= this.#bind())
  }

  setPolicy(policy: P): void {
    this.#change(() =>
      this.#policies.set(nameOf(policy), {
        policy,
        criteria: criteriaOf(policy.spec.matchConstraints),
        compiled: once(() => this.#compile(policy)),
      }),
    )
  }

  setBinding(binding: B): void {
    const name = nameOf(binding)
    this.#change(() => this.#bindings.set(name, { binding, name, criteria: criteriaOf(binding.spec.matchResources) }))
  }

  removePolicy(name: string): void {
    this.#change(() => this.#policies.delete(name))
  }

  removeBinding(name: string): void {
    this.#change(() => this.#bindings.delete(name))
  }

  #change(make: () => unknown): void {
    make()
    this.#bound = undefined
  }

  #bind(): BoundPolicy<P, B, C>[] {
    const byPolicy = Map.groupBy(
      [...this.#bindings.values()].sort((one, other) => compareText(one.name, other.name)),
      ({ binding }) => binding.spec.policyName ?? '',
    )
    return [...this.#policies]
      .map(([name, known]) => ({ name, ...known, bindings: byPolicy.get(name) ?? [] }))
      .filter(({ bindings }) => bindings.length > 0)
      .sort((one, other) => compareText(one.name, other.name))
  }
}

/** A policy must have match constraints; a binding without them matches all requests of its policy. */
function criteriaOf(match: MatchResources | undefined): Criteria {
  const { resourceRules = [], excludeResourceRules = [], ...rest } = match ?? {}
  return createCriteria({
    rules: resourceRules.length === 0 ? undefined : resourceRules,
    excludeRules: excludeResourceRules,
    matchPolicy: rest.matchPolicy,
    namespaceSelector: rest.namespaceSelector ?? {},
    objectSelector: rest.objectSelector ?? {},
  })
}

/** Follows the collections of the two kinds, which must be served. */
export function followPolicies<P extends Policy, B extends Binding, C>(
  registry: Pick<Registry, 'storeOf'>,
  set: PolicySet<P, B, C>,
  kinds: { readonly policies: Kind; readonly bindings: Kind },
): Following {
  const part = (kind: Kind, put: (object: KubeObject) => void, drop: (name: string) => void): readonly Following[] => {
    const store = registry.storeOf(kind)
    // Not served: then there are none.
    if (store === undefined) return []
    return [follow(store.collection, { set: ({ object }) => put(object), remove: ({ name }) => drop(name) })]
  }
  return joinFollowings([
    ...part(
      kinds.policies,
      (object) => set.setPolicy(object as P),
      (name) => set.removePolicy(name),
    ),
    ...part(
      kinds.bindings,
      (object) => set.setBinding(object as B),
      (name) => set.removeBinding(name),
    ),
  ])
}

function nameOf({ metadata }: KubeObject): string {
  return metadata.name ?? ''
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
