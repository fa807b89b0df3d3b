/** Tables of what is wrong with pod specs. The texts have been compared with those of upstream's validation, v1.36.4. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, PodSpec } from '#apis/core/v1.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'

import { defaultPodSpec } from './defaults.ts'
import { podOptions } from './options.ts'
import { validatePodSpec } from './pod-spec.ts'
import type { PodRules } from './rules.ts'

/** Gates of v1.36 that matter here and are off. */
const gatesOff = new Set(['UserNamespacesHostNetworkSupport', 'SELinuxMount', 'TaintTolerationComparisonOperators'])

export const defaultRules: PodRules = { isEnabled: (gate) => !gatesOff.has(gate), allowPrivileged: true }

/** A container that is in order, but for `patch`. */
export function web(patch: Partial<Container> = {}): Container {
  return { name: 'web', image: 'nginx:1', resources: {}, ...patch }
}

/** The texts without what regular expression was used, which are the business of names.test.ts. */
export function complaintsAbout(patch: Partial<PodSpec>, rules: PodRules = defaultRules): string[] {
  const spec: PodSpec = { containers: [web()], ...patch }
  defaultPodSpec(spec)
  return validatePodSpec(spec, 'spec', podOptions(rules)).map((error) =>
    fieldErrorText(error).replace(/ \(e\.g\. .*$/, ' …'),
  )
}

export interface RuleCase {
  readonly title: string
  /** What differs from a spec with one plain container. */
  readonly patch: Partial<PodSpec>
  readonly errors: readonly string[]
}

export function describePodRules(name: string, cases: readonly RuleCase[]): void {
  describe(name, () => {
    for (const { title, patch, errors } of cases) {
      it(title, () => assert.deepEqual(complaintsAbout(patch), errors))
    }
  })
}
