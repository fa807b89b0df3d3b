/** Whether a container starts again after it ended: its own policy, rules by exit code, and what a resize does to it. */
import type { Container, ContainerResizePolicy, ContainerRestartRule } from '#apis/core/v1.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
} from '#meta/validation/field-error.ts'
import { required, tooMany } from '#meta/validation/field-error.ts'

import { oneOf, requiredOneOf } from './checks.ts'
import type { PodOptions } from './rules.ts'

const MAX_RULES = 20
const MAX_EXIT_CODES = 255

/** The policy of a regular container. */
export function validateContainerRestart(path: string, container: Container, options: PodOptions): FieldError[] {
  if (options.restartRules) return validateRestartPolicy(path, container, options)
  if (container.restartPolicy === undefined) return []
  return [forbidden(child(path, 'restartPolicy'), 'may not be set for non-init containers')]
}

/** The policy of an init container; `Always` makes it a sidecar. */
export function validateInitRestart(path: string, container: Container, options: PodOptions): FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container
  if (restartPolicy === undefined) return rules.length > 0 ? [missingPolicy(path)] : []
  if (!options.restartRules) {
    if (restartPolicy === 'Always') return []
    return [notSupported(child(path, 'restartPolicy'), asJson(restartPolicy), ['Always'])]
  }
  if (restartPolicy !== 'Always' || options.restartAllContainers) return validateRestartPolicy(path, container, options)
  if (rules.length === 0) return []
  const complaint = 'restartPolicyRules are not allowed for init containers with restart policy Always'
  return [forbidden(child(path, 'restartPolicyRules'), complaint)]
}

function missingPolicy(path: string): FieldError {
  return required(child(path, 'restartPolicy'), 'must specify restartPolicy when restart rules are used')
}

function validateRestartPolicy(path: string, container: Container, options: PodOptions): FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container
  if (restartPolicy === undefined && rules.length === 0) return []
  const field = child(path, 'restartPolicyRules')
  return [
    ...(restartPolicy === undefined
      ? [missingPolicy(path)]
      : oneOf(child(path, 'restartPolicy'), restartPolicy, ['Always', 'Never', 'OnFailure'])),
    ...(rules.length > MAX_RULES ? [tooMany(field, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, at) => validateRule(index(field, at), rule, options)),
  ]
}

function validateRule(
  path: string,
  { action = '', exitCodes }: ContainerRestartRule,
  options: PodOptions,
): FieldError[] {
  const actions = options.restartAllContainers ? ['Restart', 'RestartAllContainers'] : ['Restart']
  const errors = oneOf(child(path, 'action'), action, actions)
  if (exitCodes === undefined) return [...errors, required(child(path, 'exitCodes'), 'must be specified')]
  const { operator = '', values = [] } = exitCodes
  errors.push(...oneOf(child(path, 'exitCodes', 'operator'), operator, ['In', 'NotIn']))
  if (values.length <= MAX_EXIT_CODES) return errors
  return [...errors, tooMany(child(path, 'exitCodes', 'values'), values.length, MAX_EXIT_CODES)]
}

/** What happens to the container when its resources are changed in place. */
export function validateResizePolicy(
  field: string,
  policies: readonly ContainerResizePolicy[] = [],
  podRestartPolicy: string | undefined,
): FieldError[] {
  const seen = new Set<string>()
  return policies.flatMap(({ resourceName, restartPolicy }, at) => {
    const errors = seen.has(resourceName) ? [duplicate(index(field, at), asJson(resourceName))] : []
    seen.add(resourceName)
    errors.push(...requiredOneOf(field, resourceName, ['cpu', 'memory']))
    errors.push(...requiredOneOf(field, restartPolicy, ['NotRequired', 'RestartContainer']))
    if (podRestartPolicy === 'Never' && restartPolicy !== 'NotRequired') {
      const complaint = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
      errors.push(invalid(field, asJson(restartPolicy), complaint))
    }
    return errors
  })
}
