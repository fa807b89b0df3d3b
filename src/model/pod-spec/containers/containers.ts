/** Validates containers: rules that all share, and those of regular, init and ephemeral containers. */
import type { Container, ContainerPort, EphemeralContainer, PodSpec } from '#apis/core/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { portName, portNumber } from '#meta/validation/names.ts'
import { requiredOneOf, requiredText, validateDnsLabel } from '#meta/validation/rules.ts'

import type { PodOptions } from '../rules.ts'
import { validateSecurityContext } from '../security.ts'
import { isSidecar } from '../walk.ts'
import { validateEnv, validateEnvFrom } from './env.ts'
import { validateDevices, validateMounts, type VolumeMap } from './mounts.ts'
import { validateLifecycle, validateProbes } from './probes.ts'
import { validateContainerResources } from './resources.ts'
import { validateContainerRestart, validateInitRestart, validateResizePolicy } from './restart.ts'

/** The context of container validation. */
export interface PodScope {
  readonly spec: PodSpec
  readonly volumes: VolumeMap
  readonly claimNames: ReadonlySet<string>
  readonly options: PodOptions
}

export function validateContainers(path: FieldPath, scope: PodScope): FieldError[] {
  const containers = scope.spec.containers ?? []
  if (containers.length === 0) return [path.required()]
  const isRepeated = createRepetition()
  const errors = path.each(containers, (path, container) => {
    return collectErrors(
      validateAnyContainer(path, container, scope),
      isRepeated(container.name) && path.child('name').duplicate(container.name),
      validateHooks(path, container, scope),
      validateContainerRestart(path, container, scope.options),
    )
  })
  return [...errors, ...validateHostPorts(path, containers)]
}

function validateHooks(path: FieldPath, container: Container, { spec }: PodScope): FieldError[] {
  const graceSeconds = spec.terminationGracePeriodSeconds
  const { lifecycle } = container
  return collectErrors(
    lifecycle !== undefined && validateLifecycle(path.child('lifecycle'), lifecycle, { graceSeconds, os: spec.os }),
    validateProbes(path, container, graceSeconds),
  )
}

export function validateInitContainers(field: FieldPath, scope: PodScope): FieldError[] {
  const names = new Set((scope.spec.containers ?? []).map(({ name }) => name))
  return field.each(scope.spec.initContainers, (path, container) => {
    const errors = [
      ...validateAnyContainer(path, container, scope),
      ...validateInitRestart(path, container, scope.options),
    ]
    if (names.has(container.name)) errors.push(path.child('name').duplicate(container.name))
    else if (container.name !== '') names.add(container.name)
    return [
      ...errors,
      // Init containers are validated one at a time; hence always index 0, like upstream.
      ...validateHostPorts(field, [container]),
      ...(isSidecar(container) ? validateHooks(path, container, scope) : refuseHooks(path, container)),
      ...validateInitResize(path, container, scope.options),
    ]
  })
}

function refuseHooks(path: FieldPath, container: Container): FieldError[] {
  const hooks = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const
  return hooks
    .filter((name) => container[name] !== undefined)
    .map((name) => path.child(name).forbidden('may not be set for init containers without restartPolicy=Always'))
}

function validateInitResize(path: FieldPath, container: Container, { restartingInitResize }: PodOptions): FieldError[] {
  if (isSidecar(container) || restartingInitResize) return []
  const field = path.child('resizePolicy')
  return field.each(container.resizePolicy, (path, { restartPolicy }) => {
    if (restartPolicy !== 'RestartContainer') return []
    const complaint = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [path.child('restartPolicy').invalid(asJson(restartPolicy), complaint)]
  })
}

const refusedInEphemeral = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const

const NOT_EPHEMERAL = 'cannot be set for an Ephemeral Container'

export function validateEphemeralContainers(path: FieldPath, scope: PodScope): FieldError[] {
  const { containers, initContainers = [], ephemeralContainers = [] } = scope.spec
  const targets = new Set([...(containers ?? []), ...initContainers].map(({ name }) => name))
  const names = new Set(targets)
  return path.each(ephemeralContainers, (path, container) => {
    const errors = [...validateAnyContainer(path, container, scope), ...validateImageSpace(path, container)]
    if (names.has(container.name)) errors.push(path.child('name').duplicate(container.name))
    names.add(container.name)
    const { targetContainerName = '' } = container
    if (targetContainerName !== '' && !targets.has(targetContainerName)) {
      errors.push(path.child('targetContainerName').notFound(targetContainerName))
    }
    return [...errors, ...refuseInEphemeral(path, container)]
  })
}

/** Ephemeral containers may not affect the resources and lifecycle of the pod. */
function refuseInEphemeral(path: FieldPath, container: EphemeralContainer): FieldError[] {
  const isSet = (name: (typeof refusedInEphemeral)[number]): boolean =>
    name === 'resources' ? Object.keys(container.resources ?? {}).length > 0 : container[name] !== undefined
  const errors = refusedInEphemeral.filter(isSet).map((name) => path.child(name).forbidden(NOT_EPHEMERAL))
  for (const [at, mount] of (container.volumeMounts ?? []).entries()) {
    for (const name of ['subPath', 'subPathExpr'] as const) {
      if ((mount[name] ?? '') !== '') {
        errors.push(path.child('volumeMounts').index(at).child(name).forbidden(NOT_EPHEMERAL))
      }
    }
  }
  return errors
}

/** Only for pods: templates with spaces around the image were accepted before. */
export function validateImageSpace(path: FieldPath, { image = '' }: Container): FieldError[] {
  if (image.trim() === image) return []
  return [path.child('image').invalid(image, 'must not have leading or trailing whitespace')]
}

function validateAnyContainer(path: FieldPath, container: Container, scope: PodScope): FieldError[] {
  const { spec, volumes, claimNames, options } = scope
  const field = (name: string): FieldPath => path.child(name)
  return [
    ...(container.name === '' ? [field('name').required()] : validateDnsLabel(field('name'), container.name)),
    ...requiredText(field('image'), container.image),
    ...requiredOneOf(field('terminationMessagePolicy'), container.terminationMessagePolicy, [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...validatePorts(field('ports'), container.ports),
    ...validateEnv(field('env'), container.env, options),
    ...validateEnvFrom(field('envFrom'), container.envFrom, options),
    ...validateMounts(field('volumeMounts'), container, volumes),
    ...validateDevices(field('volumeDevices'), container, volumes),
    ...validatePullPolicy(field('imagePullPolicy'), container.imagePullPolicy),
    ...validateContainerResources(field('resources'), container.resources, claimNames, options),
    ...validateResizePolicy(field('resizePolicy'), container.resizePolicy, spec.restartPolicy),
    ...validateSecurityContext(field('securityContext'), container.securityContext, {
      hostUsers: spec.hostUsers ?? true,
      allowPrivileged: options.allowPrivileged,
    }),
  ]
}

export function validatePullPolicy(path: FieldPath, policy: string | undefined): FieldError[] {
  return requiredOneOf(path, policy, ['Always', 'IfNotPresent', 'Never'])
}

function validatePorts(path: FieldPath, ports: readonly ContainerPort[] = []): FieldError[] {
  const names = new Set<string>()
  return path.each(ports, (path, port) => {
    const { containerPort, hostPort = 0 } = port
    return collectErrors(
      validatePortName(path.child('name'), port, names),
      containerPort === 0
        ? path.child('containerPort').required()
        : path.child('containerPort').check(containerPort, portNumber),
      hostPort !== 0 && path.child('hostPort').check(hostPort, portNumber),
      requiredOneOf(path.child('protocol'), port.protocol, ['SCTP', 'TCP', 'UDP']),
    )
  })
}

function validatePortName(path: FieldPath, { name = '' }: ContainerPort, names: Set<string>): FieldError[] {
  if (name === '') return []
  const complaints = portName(name)
  if (complaints.length > 0) return path.check(name, () => complaints)
  if (names.has(name)) return [path.duplicate(name)]
  names.add(name)
  return []
}

/** Host ports must be unique. */
function validateHostPorts(path: FieldPath, containers: readonly Container[]): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(containers, (path, { ports = [] }) =>
    path.child('ports').each(ports, (path, { hostPort = 0, hostIP = '', protocol = '' }) => {
      if (hostPort === 0) return []
      const text = `${protocol}/${hostIP}/${hostPort}`
      if (isRepeated(text)) return [path.child('hostPort').duplicate(text)]
      return []
    }),
  )
}
