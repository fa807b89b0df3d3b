/** Lists the policy invocations of a request: each matching policy with each matching binding and each parameter. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { Clock } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { ConditionMeter } from '../matching/condition-meter.ts'
import type { Form, Forms } from '../matching/forms.ts'
import { matchRequest, namespaceOf } from '../matching/matcher.ts'
import type { ExpressionMeter } from './metrics.ts'
import type { ParamSource } from './params.ts'
import type { Binding, BoundPolicy, Policy, PolicySet } from './policy-set.ts'

/** The dependencies of policies. */
export interface PolicyTools {
  readonly forms: Forms
  readonly params: ParamSource
  readonly ask: Authorizer['authorize']
  readonly clock: Clock
  readonly metrics: ServerMeters
  readonly conditions: ConditionMeter
  readonly expressions: ExpressionMeter
}

export interface Invocation<P extends Policy, B extends Binding, C> {
  readonly bound: BoundPolicy<P, B, C>
  readonly binding: B
  readonly form: Form
  readonly param: KubeObject | undefined
}

/** An unusable policy or binding. */
export interface Misconfiguration<P extends Policy> {
  readonly policy: P
  readonly binding?: Binding
  readonly why: string
}

export interface PolicyVisitor<P extends Policy, B extends Binding, C> {
  /** Only for policies that do not ignore it. */
  misconfigured(fault: Misconfiguration<P>): void
  invoke(invocation: Invocation<P, B, C>): void | Promise<void>
}

/** Visits all invocations, by policy name, then by binding name. Throws the visitor's errors. */
export async function visitPolicies<P extends Policy, B extends Binding, C>(
  tools: PolicyTools,
  set: PolicySet<P, B, C>,
  attributes: Attributes,
  visitor: PolicyVisitor<P, B, C>,
): Promise<void> {
  for (const bound of set.bound) {
    const { policy } = bound
    const report = (error: unknown, binding?: Binding): void => {
      if (policy.spec.failurePolicy !== 'Ignore')
        visitor.misconfigured({ policy, why: textOf(error), ...(binding && { binding }) })
    }
    const form = await attempt(() => matchRequest(bound.criteria, attributes, tools.forms), report)
    if (form === undefined) continue
    await visitBindings({ tools, attributes, visitor, bound, form, report })
  }
}

interface BindingVisit<P extends Policy, B extends Binding, C> {
  readonly tools: PolicyTools
  readonly attributes: Attributes
  readonly visitor: PolicyVisitor<P, B, C>
  readonly bound: BoundPolicy<P, B, C>
  readonly form: Form
  readonly report: (error: unknown, binding?: Binding) => void
}

async function visitBindings<P extends Policy, B extends Binding, C>(visit: BindingVisit<P, B, C>): Promise<void> {
  const { tools, attributes, visitor, bound, form, report } = visit
  const { paramKind } = bound.policy.spec
  const source = await attempt(() => ({ served: tools.params.resolve(paramKind) }), report)
  if (source === undefined) return
  for (const { binding, criteria } of bound.bindings) {
    const fail = (error: unknown): void => report(error, binding)
    if ((await attempt(() => matchRequest(criteria, attributes, tools.forms), fail)) === undefined) continue
    const collect = (): Promise<readonly (KubeObject | undefined)[]> =>
      tools.params.collect(source.served, binding.spec.paramRef, namespaceOf(attributes))
    const params = (await attempt(collect, fail)) ?? []
    for (const param of params) await visitor.invoke({ bound, binding, form, param })
  }
}

/** Undefined if it cannot be determined, which is reported. */
async function attempt<T>(work: () => T | Promise<T>, report: (error: unknown) => void): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    report(error)
    return undefined
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Resources that are never intercepted, because a bad policy could lock out all users. */
const REVIEWS: ReadonlySet<string> = new Set([
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
])

const POLICIES: ReadonlySet<string> = new Set([
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
])

export function isExempt({ addressed: { group, resource } }: Attributes): boolean {
  return (group === 'admissionregistration.k8s.io' && POLICIES.has(resource)) || REVIEWS.has(`${group}/${resource}`)
}
