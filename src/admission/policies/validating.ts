/** ValidatingAdmissionPolicy: refuses, warns about or audits requests that violate a policy. */
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '#apis/admissionregistration/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { StatusError } from '#meta/status.ts'

import { refuse } from '../kit/refusal.ts'
import type { AdmissionPlugin } from '../plugin.ts'
import { AuditValues } from './audit-values.ts'
import { type CompiledValidatingPolicy, compileValidatingPolicy } from './compiled-policy.ts'
import { type Decision, evaluateValidations, faultOutcome, type PolicyOutcome } from './evaluation.ts'
import { type Invocation, isExempt, type PolicyTools, visitPolicies } from './invocation.ts'
import { createValidationMeter, type ValidationMeter } from './metrics.ts'
import { PolicyContext } from './policy-context.ts'
import { PolicySet } from './policy-set.ts'

type ValidatingInvocation = Invocation<
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  CompiledValidatingPolicy
>

/** The reason of a refusal. */
interface Denial {
  readonly policy: string
  readonly binding?: string | undefined
  readonly message: string
  readonly reason?: string | undefined
}

export class ValidatingPolicies implements AdmissionPlugin {
  readonly name = 'ValidatingAdmissionPolicy'
  readonly on = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const
  readonly policies: PolicySet<ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, CompiledValidatingPolicy>
  readonly #tools: PolicyTools
  readonly #meter: ValidationMeter

  constructor(tools: PolicyTools) {
    this.#tools = tools
    this.policies = new PolicySet(({ spec }) => tools.expressions.compiled(() => compileValidatingPolicy(spec)))
    this.#meter = createValidationMeter(tools.metrics)
  }

  validate(attributes: Attributes): void | Promise<void> {
    if (this.policies.bound.length === 0 || isExempt(attributes)) return undefined
    return this.#evaluatePolicies(attributes)
  }

  async #evaluatePolicies(attributes: Attributes): Promise<void> {
    const denials: Denial[] = []
    const notes = new AuditValues()
    const context = new PolicyContext(this.#tools, attributes)
    await visitPolicies(this.#tools, this.policies, attributes, {
      misconfigured: ({ policy, binding, why }) =>
        denials.push({
          policy: nameOf(policy),
          binding: binding && nameOf(binding),
          message: `failed to configure ${binding === undefined ? 'policy' : 'binding'}: ${why}`,
        }),
      invoke: async (invocation) => {
        const outcome = await this.#evaluate(invocation, context)
        for (const [at, decision] of outcome.decisions.entries())
          denials.push(...this.#enforce(invocation, decision, at, attributes))
        denials.push(...this.#note(invocation, outcome, notes))
      },
    })
    notes.publish(attributes)
    if (denials[0] !== undefined) throw refusalOf(attributes, denials[0])
  }

  async #evaluate(invocation: ValidatingInvocation, context: PolicyContext): Promise<PolicyOutcome> {
    const { bound } = invocation
    const policy = bound.compiled()
    const ignoresFaults = bound.policy.spec.failurePolicy === 'Ignore'
    const { matches, error } = await context.matches(invocation, policy)
    if (error !== undefined) return faultOutcome(error, ignoresFaults)
    if (!matches) return { decisions: [], annotations: [] }
    const inputs = await context.inputs(invocation)
    const { clock } = this.#tools
    return context.evaluate((asking) => evaluateValidations(policy, { inputs, asking, ignoresFaults, clock }))
  }

  /** Applies the binding's actions to a decision; returns the refusals. */
  #enforce({ binding, bound }: ValidatingInvocation, decision: Decision, at: number, attributes: Attributes): Denial[] {
    const [policy, bindingName] = [bound.name, nameOf(binding)]
    const { isDenied, isFault, message, reason } = decision
    const observe = (action: string): void => this.#meter.observe(policy, bindingName, decision, action)
    if (!isDenied) {
      if (isFault) observe('allow')
      return []
    }
    const denials: Denial[] = []
    for (const action of binding.spec.validationActions ?? []) {
      if (action === 'Deny') denials.push({ policy, binding: bindingName, message, reason })
      else if (action === 'Audit') annotateFailure(attributes, binding, message, at)
      else
        attributes.warn(
          `Validation failed for ValidatingAdmissionPolicy '${policy}' with binding '${bindingName}': ${message}`,
        )
      observe(action.toLowerCase())
    }
    return denials
  }

  #note({ binding, bound }: ValidatingInvocation, { annotations }: PolicyOutcome, notes: AuditValues): Denial[] {
    return annotations.flatMap(({ key, value, fault, elapsedMs }) => {
      if (value !== undefined) notes.add(`${bound.name}/${key}`, value)
      if (fault === undefined) return []
      const name = nameOf(binding)
      this.#meter.observe(bound.name, name, { isDenied: true, isFault: true, message: fault, elapsedMs }, 'deny')
      return [{ policy: bound.name, binding: name, message: fault }]
    })
  }
}

function nameOf({ metadata }: { readonly metadata: { readonly name?: string } }): string {
  return metadata.name ?? ''
}

const FAILURE_KEY = 'validation.policy.admission.k8s.io/validation_failure'

/** The first of several failures counts, as for annotations. */
function annotateFailure(
  { annotate }: Attributes,
  binding: ValidatingAdmissionPolicyBinding,
  message: string,
  expressionIndex: number,
): void {
  const { policyName: policy = '', validationActions } = binding.spec
  const failure = { message, policy, binding: nameOf(binding), expressionIndex, validationActions }
  annotate?.(FAILURE_KEY, encodeJson([failure]))
}

const CODES: Readonly<Record<string, number>> = { Forbidden: 403, RequestEntityTooLarge: 413 }

/** Whatever the reason and the code, the text contains "forbidden". */
function refusalOf(attributes: Attributes, { policy, binding, message, reason = 'Invalid' }: Denial): StatusError {
  const where = binding === undefined ? '' : ` with binding '${binding}'`
  const why = `ValidatingAdmissionPolicy '${policy}'${where} denied request: ${message}`
  const { status } = refuse(attributes, why)
  const details = { ...status.details, causes: [{ message: why }] }
  return new StatusError({ ...status, reason, code: CODES[reason] ?? 422, details })
}
