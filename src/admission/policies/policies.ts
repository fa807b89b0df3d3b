/** Creates the two admission policy plugins, and watches the stored policies for them. */
import {
  MutatingAdmissionPolicies,
  MutatingAdmissionPolicyBindings,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '#apis/admissionregistration/v1.ts'
import { type Following, joinFollowings } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { createConditionMeter } from '../matching/condition-meter.ts'
import { createForms } from '../matching/forms.ts'
import type { AdmissionPlugin } from '../plugin.ts'
import { createExpressionMeter } from './metrics.ts'
import { MutatingPolicies } from './mutating.ts'
import { createParamSource } from './params.ts'
import { followPolicies } from './policy-set.ts'
import { ValidatingPolicies } from './validating.ts'

export interface AdmissionPoliciesParts {
  readonly registry: Registry
  /** Authorizes for the CEL variable `authorizer`. */
  readonly ask: Authorizer['authorize']
  readonly clock: Clock
  readonly metrics: ServerMeters
}

export interface AdmissionPolicies {
  readonly plugins: readonly AdmissionPlugin[]
  /** Starts following once the kinds are served; there are no policies before it resolves. */
  follow(): Following
}

export function createAdmissionPolicies({ registry, ask, clock, metrics }: AdmissionPoliciesParts): AdmissionPolicies {
  const tools = {
    forms: createForms(registry),
    params: createParamSource(registry),
    ask,
    clock,
    metrics,
    // Upstream's text is the same for both kinds of policies.
    expressions: createExpressionMeter(metrics, clock),
    conditions: createConditionMeter(metrics, clock, { kind: 'policy', type: 'validate' }),
  }
  const mutating = new MutatingPolicies(tools)
  const validating = new ValidatingPolicies(tools)
  return {
    plugins: [mutating, validating],
    follow: () =>
      joinFollowings([
        followPolicies(registry, mutating.policies, {
          policies: MutatingAdmissionPolicies,
          bindings: MutatingAdmissionPolicyBindings,
        }),
        followPolicies(registry, validating.policies, {
          policies: ValidatingAdmissionPolicies,
          bindings: ValidatingAdmissionPolicyBindings,
        }),
      ]),
  }
}
