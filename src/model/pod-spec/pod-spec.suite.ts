/** Tables of invalid pod specs. The texts were compared with upstream's validation, v1.36.4. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, PodSpec } from '#apis/core/v1.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { defaultPodSpec } from './defaults.ts'
import { podOptions } from './options.ts'
import { validatePodSpec } from './pod-spec.ts'
import type { PodRules } from './rules.ts'

/** Relevant gates of v1.36 that are off. */
const gatesOff = new Set(['UserNamespacesHostNetworkSupport', 'SELinuxMount', 'TaintTolerationComparisonOperators'])

export const defaultRules: PodRules = { isEnabled: (gate) => !gatesOff.has(gate), allowPrivileged: true }

/** A valid container with `patch` applied. */
export function web(patch: Partial<Container> = {}): Container {
  return { name: 'web', image: 'nginx:1', resources: {}, ...patch }
}

/** The texts without regular expressions, which names.test.ts covers. */
export function complaintsAbout(patch: Partial<PodSpec>, rules: PodRules = defaultRules): string[] {
  const spec: PodSpec = { containers: [web()], ...patch }
  defaultPodSpec(spec)
  return validatePodSpec(spec, fieldPath('spec'), podOptions(rules)).map((error) =>
    fieldErrorText(error).replace(/ \(e\.g\. .*$/, ' …'),
  )
}

export interface RuleCase {
  readonly title: string
  /** The differences from a spec with one plain container. */
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
