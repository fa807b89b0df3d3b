/**
 * Computes the variables of one request for the CEL expressions of policies. Each value is computed once for all
 * policies.
 */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { KubeObject } from '#meta/object.ts'
import type { ActivationInputs, AuthorizerValues } from '#model/expressions/activation.ts'

import { type ConditionOutcome, evaluateConditions } from '../matching/conditions.ts'
import { ExpressionAuthorizer } from '../matching/expression-authorizer.ts'
import type { Form, Shown } from '../matching/forms.ts'
import { namespaceValue, requestValue } from '../matching/request.ts'
import type { CompiledPolicy } from './compiled-policy.ts'
import type { PolicyTools } from './invocation.ts'

/** The policy, the form in which it sees the request, and the parameter. */
export interface PolicyRequest {
  readonly bound: { readonly name: string; readonly policy: { readonly spec: { readonly failurePolicy?: string } } }
  readonly form: Form
  readonly param: KubeObject | undefined
}

export class PolicyContext {
  readonly #asking: ExpressionAuthorizer
  readonly #tools: PolicyTools
  readonly #attributes: Attributes
  readonly #shown = new Map<string, Shown>()
  #namespace: Promise<object | undefined> | undefined

  constructor(tools: PolicyTools, attributes: Attributes) {
    this.#tools = tools
    this.#attributes = attributes
    this.#asking = new ExpressionAuthorizer(tools.ask, attributes)
  }

  /** Evaluates the match conditions. They see the requested resource, and no namespace. */
  async matches(
    { bound, form, param }: PolicyRequest,
    { conditions, composition }: CompiledPolicy,
  ): Promise<ConditionOutcome> {
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

  /** Runs an evaluation, again each time that a needed answer arrives. */
  evaluate<T>(work: (asking: AuthorizerValues) => T): Promise<T> {
    return this.#asking.run((asking) => this.#tools.expressions.evaluated(() => work(asking)))
  }

  async inputs({ form, param }: PolicyRequest): Promise<ActivationInputs> {
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

  /** Replaces the object. */
  changed(): void {
    this.#shown.clear()
  }
}
