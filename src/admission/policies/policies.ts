/** The two plugins that run policies, and what keeps them in step with what is stored. */
import {
  MutatingAdmissionPolicies,
  MutatingAdmissionPolicyBindings,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '#apis/admissionregistration/v1.ts'
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { type Following, joinFollowings } from '#apiserver/authorizers/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
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
  /** Answers what expressions ask of `authorizer`. */
  readonly ask: Authorizer['authorize']
  readonly clock: Clock
  readonly metrics: ServerMeters
}

export interface AdmissionPolicies {
  readonly plugins: readonly AdmissionPlugin[]
  /** Once the kinds are served. Until its end there are no policies. */
  follow(): Following
}

export function createAdmissionPolicies({ registry, ask, clock, metrics }: AdmissionPoliciesParts): AdmissionPolicies {
  const tools = {
    forms: createForms(registry),
    params: createParamSource(registry),
    ask,
    clock,
    metrics,
    // Upstream says so of both kinds of policies.
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
