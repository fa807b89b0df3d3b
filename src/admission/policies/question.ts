/** One request as the expressions of policies see it. What is the same for all of them is made once. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { KubeObject } from '#meta/object.ts'
import type { ActivationInputs, AuthorizerValues } from '#model/expressions/activation.ts'

import { Asking } from '../matching/asking.ts'
import { type ConditionOutcome, evaluateConditions } from '../matching/conditions.ts'
import type { Form, Shown } from '../matching/forms.ts'
import { namespaceValue, requestValue } from '../matching/request.ts'
import type { CompiledPolicy } from './compiled-policy.ts'
import type { PolicyTools } from './invocation.ts'

/** Which policy, in which form it sees the request, and with which parameter. */
export interface Asked {
  readonly bound: { readonly name: string; readonly policy: { readonly spec: { readonly failurePolicy?: string } } }
  readonly form: Form
  readonly param: KubeObject | undefined
}

export class Question {
  readonly #asking: Asking
  readonly #tools: PolicyTools
  readonly #attributes: Attributes
  readonly #shown = new Map<string, Shown>()
  #namespace: Promise<object | undefined> | undefined

  constructor(tools: PolicyTools, attributes: Attributes) {
    this.#tools = tools
    this.#attributes = attributes
    this.#asking = new Asking(tools.ask, attributes)
  }

  /** Whether the conditions of the policy are met. They see the resource as the request names it, and no namespace. */
  async matches({ bound, form, param }: Asked, { conditions, composition }: CompiledPolicy): Promise<ConditionOutcome> {
    if (conditions.length === 0) return { matches: true, failures: 0 }
    const { kind, object, oldObject } = await this.shown(form)
    const request = requestValue(this.#attributes, { kind, resource: this.#attributes.addressed })
    const { failurePolicy } = bound.policy.spec
    const inputs = { object, oldObject, request, params: param }
    const measured = this.#tools.conditions.begin(bound.name, this.#attributes.operation)
    const outcome = await this.evaluate((asking) =>
      evaluateConditions(conditions, { inputs, asking, composition, failurePolicy }),
    )
    measured(outcome)
    return outcome
  }

  /** Runs what evaluates, again each time that an answer it needs has come. */
  evaluate<T>(work: (asking: AuthorizerValues) => T): Promise<T> {
    return this.#asking.run((asking) => this.#tools.expressions.evaluated(() => work(asking)))
  }

  async inputs({ form, param }: Asked): Promise<ActivationInputs> {
    const { object, oldObject } = await this.shown(form)
    const namespaceObject = await (this.#namespace ??= namespaceValue(this.#attributes))
    return { object, oldObject, request: requestValue(this.#attributes, form), namespaceObject, params: param }
  }

  async shown({ kind }: Form): Promise<Shown> {
    const key = `${kind.group}/${kind.version}/${kind.kind}`
    let shown = this.#shown.get(key)
    if (shown === undefined) this.#shown.set(key, (shown = await this.#tools.forms.show(this.#attributes, kind)))
    return shown
  }

  /** The object is another one from now on. */
  changed(): void {
    this.#shown.clear()
  }
}
