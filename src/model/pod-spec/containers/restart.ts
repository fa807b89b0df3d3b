/** Validates restart policies of containers, their restart rules by exit code, and resize policies. */
import type { Container, ContainerResizePolicy, ContainerRestartRule } from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOf, requiredOneOf } from '#meta/validation/rules.ts'

import type { PodOptions } from '../rules.ts'

const MAX_RULES = 20
const MAX_EXIT_CODES = 255

/** The policy of a regular container. */
export function validateContainerRestart(path: FieldPath, container: Container, options: PodOptions): FieldError[] {
  if (options.restartRules) return validateRestartPolicy(path, container, options)
  if (container.restartPolicy === undefined) return []
  return [path.child('restartPolicy').forbidden('may not be set for non-init containers')]
}

/** The policy of an init container; `Always` makes it a sidecar. */
export function validateInitRestart(path: FieldPath, container: Container, options: PodOptions): FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container
  if (restartPolicy === undefined) return rules.length > 0 ? [missingPolicy(path)] : []
  if (!options.restartRules) {
    if (restartPolicy === 'Always') return []
    return [path.child('restartPolicy').notSupported(asJson(restartPolicy), ['Always'])]
  }
  if (restartPolicy !== 'Always' || options.restartAllContainers) return validateRestartPolicy(path, container, options)
  if (rules.length === 0) return []
  const complaint = 'restartPolicyRules are not allowed for init containers with restart policy Always'
  return [path.child('restartPolicyRules').forbidden(complaint)]
}

function missingPolicy(path: FieldPath): FieldError {
  return path.child('restartPolicy').required('must specify restartPolicy when restart rules are used')
}

function validateRestartPolicy(path: FieldPath, container: Container, options: PodOptions): FieldError[] {
  const { restartPolicy, restartPolicyRules: rules = [] } = container
  if (restartPolicy === undefined && rules.length === 0) return []
  const field = path.child('restartPolicyRules')
  return collectErrors(
    restartPolicy === undefined
      ? missingPolicy(path)
      : oneOf(path.child('restartPolicy'), restartPolicy, ['Always', 'Never', 'OnFailure']),
    rules.length > MAX_RULES && field.tooMany(rules.length, MAX_RULES),
    field.each(rules, (path, rule) => validateRule(path, rule, options)),
  )
}

function validateRule(
  path: FieldPath,
  { action = '', exitCodes }: ContainerRestartRule,
  options: PodOptions,
): FieldError[] {
  const actions = options.restartAllContainers ? ['Restart', 'RestartAllContainers'] : ['Restart']
  const errors = oneOf(path.child('action'), action, actions)
  if (exitCodes === undefined) return [...errors, path.child('exitCodes').required('must be specified')]
  const { operator = '', values = [] } = exitCodes
  errors.push(...oneOf(path.child('exitCodes.operator'), operator, ['In', 'NotIn']))
  if (values.length <= MAX_EXIT_CODES) return errors
  return [...errors, path.child('exitCodes.values').tooMany(values.length, MAX_EXIT_CODES)]
}

/** The restart of a container when its resources change in place. */
export function validateResizePolicy(
  path: FieldPath,
  policies: readonly ContainerResizePolicy[] = [],
  podRestartPolicy: string | undefined,
): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(policies, (itemPath, { resourceName, restartPolicy }) => {
    return collectErrors(
      isRepeated(resourceName) && itemPath.duplicate(asJson(resourceName)),
      requiredOneOf(path, resourceName, ['cpu', 'memory']),
      requiredOneOf(path, restartPolicy, ['NotRequired', 'RestartContainer']),
      podRestartPolicy === 'Never' &&
        restartPolicy !== 'NotRequired' &&
        path.invalid(asJson(restartPolicy), "must be 'NotRequired' when pod `restartPolicy` is 'Never'"),
    )
  })
}
