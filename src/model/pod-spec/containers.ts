/** The rules of containers: what all share, and what regular, init and ephemeral ones differ in. */
import type { Container, ContainerPort, EphemeralContainer, PodSpec } from '#apis/core/v1.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notFound,
  required,
} from '#meta/validation/field-error.ts'
import { portName, portNumber } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { requiredOneOf, requiredText, validateDnsLabel } from './checks.ts'
import { validateEnv, validateEnvFrom } from './env.ts'
import { validateDevices, validateMounts, type VolumeMap } from './mounts.ts'
import { validateLifecycle, validateProbes } from './probes.ts'
import { validateContainerResources } from './resources.ts'
import { validateContainerRestart, validateInitRestart, validateResizePolicy } from './restart.ts'
import type { PodOptions } from './rules.ts'
import { validateSecurityContext } from './security.ts'
import { isSidecar } from './walk.ts'

/** What containers are judged against. */
export interface PodScope {
  readonly spec: PodSpec
  readonly volumes: VolumeMap
  readonly claimNames: ReadonlySet<string>
  readonly options: PodOptions
}

export function validateContainers(field: string, scope: PodScope): FieldError[] {
  const containers = scope.spec.containers ?? []
  if (containers.length === 0) return [required(field)]
  const names = new Set<string>()
  const errors = containers.flatMap((container, at) => {
    const path = index(field, at)
    const found = validateAnyContainer(path, container, scope)
    if (names.has(container.name)) found.push(duplicate(child(path, 'name'), container.name))
    names.add(container.name)
    return [
      ...found,
      ...validateHooks(path, container, scope),
      ...validateContainerRestart(path, container, scope.options),
    ]
  })
  return [...errors, ...validateHostPorts(field, containers)]
}

function validateHooks(path: string, container: Container, { spec }: PodScope): FieldError[] {
  const graceSeconds = spec.terminationGracePeriodSeconds
  const { lifecycle } = container
  return [
    ...(lifecycle === undefined
      ? []
      : validateLifecycle(child(path, 'lifecycle'), lifecycle, { graceSeconds, os: spec.os })),
    ...validateProbes(path, container, graceSeconds),
  ]
}

export function validateInitContainers(field: string, scope: PodScope): FieldError[] {
  const names = new Set((scope.spec.containers ?? []).map(({ name }) => name))
  return (scope.spec.initContainers ?? []).flatMap((container, at) => {
    const path = index(field, at)
    const errors = [
      ...validateAnyContainer(path, container, scope),
      ...validateInitRestart(path, container, scope.options),
    ]
    if (names.has(container.name)) errors.push(duplicate(child(path, 'name'), container.name))
    else if (container.name !== '') names.add(container.name)
    return [
      ...errors,
      // One at a time, for they run so; hence always the index 0, as upstream shows it.
      ...validateHostPorts(field, [container]),
      ...(isSidecar(container) ? validateHooks(path, container, scope) : refuseHooks(path, container)),
      ...validateInitResize(path, container, scope.options),
    ]
  })
}

function refuseHooks(path: string, container: Container): FieldError[] {
  const hooks = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const
  return hooks
    .filter((name) => container[name] !== undefined)
    .map((name) => forbidden(child(path, name), 'may not be set for init containers without restartPolicy=Always'))
}

function validateInitResize(path: string, container: Container, { restartingInitResize }: PodOptions): FieldError[] {
  if (isSidecar(container) || restartingInitResize) return []
  const field = child(path, 'resizePolicy')
  return (container.resizePolicy ?? []).flatMap(({ restartPolicy }, at) => {
    if (restartPolicy !== 'RestartContainer') return []
    const complaint = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [invalid(child(index(field, at), 'restartPolicy'), asJson(restartPolicy), complaint)]
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

export function validateEphemeralContainers(field: string, scope: PodScope): FieldError[] {
  const { containers, initContainers = [], ephemeralContainers = [] } = scope.spec
  const targets = new Set([...(containers ?? []), ...initContainers].map(({ name }) => name))
  const names = new Set(targets)
  return ephemeralContainers.flatMap((container, at) => {
    const path = index(field, at)
    const errors = [...validateAnyContainer(path, container, scope), ...validateImageSpace(path, container)]
    if (names.has(container.name)) errors.push(duplicate(child(path, 'name'), container.name))
    names.add(container.name)
    const { targetContainerName = '' } = container
    if (targetContainerName !== '' && !targets.has(targetContainerName)) {
      errors.push(notFound(child(path, 'targetContainerName'), targetContainerName))
    }
    return [...errors, ...refuseInEphemeral(path, container)]
  })
}

/** They come and go with their pod and must not become part of what it is for. */
function refuseInEphemeral(path: string, container: EphemeralContainer): FieldError[] {
  const isSet = (name: (typeof refusedInEphemeral)[number]): boolean =>
    name === 'resources' ? Object.keys(container.resources ?? {}).length > 0 : container[name] !== undefined
  const errors = refusedInEphemeral.filter(isSet).map((name) => forbidden(child(path, name), NOT_EPHEMERAL))
  for (const [at, mount] of (container.volumeMounts ?? []).entries()) {
    for (const name of ['subPath', 'subPathExpr'] as const) {
      if ((mount[name] ?? '') !== '') {
        errors.push(forbidden(child(index(child(path, 'volumeMounts'), at), name), NOT_EPHEMERAL))
      }
    }
  }
  return errors
}

/** Only for pods: templates with spaces around the image have meant something to somebody. */
export function validateImageSpace(path: string, { image = '' }: Container): FieldError[] {
  if (image.trim() === image) return []
  return [invalid(child(path, 'image'), image, 'must not have leading or trailing whitespace')]
}

function validateAnyContainer(path: string, container: Container, scope: PodScope): FieldError[] {
  const { spec, volumes, claimNames, options } = scope
  const field = (name: string): string => child(path, name)
  return [
    ...(container.name === '' ? [required(field('name'))] : validateDnsLabel(field('name'), container.name)),
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

export function validatePullPolicy(field: string, policy: string | undefined): FieldError[] {
  return requiredOneOf(field, policy, ['Always', 'IfNotPresent', 'Never'])
}

function validatePorts(field: string, ports: readonly ContainerPort[] = []): FieldError[] {
  const names = new Set<string>()
  return ports.flatMap((port, at) => {
    const path = index(field, at)
    const { containerPort, hostPort = 0 } = port
    return [
      ...validatePortName(child(path, 'name'), port, names),
      ...(containerPort === 0
        ? [required(child(path, 'containerPort'))]
        : complaining(child(path, 'containerPort'), containerPort, portNumber(containerPort))),
      ...(hostPort === 0 ? [] : complaining(child(path, 'hostPort'), hostPort, portNumber(hostPort))),
      ...requiredOneOf(child(path, 'protocol'), port.protocol, ['SCTP', 'TCP', 'UDP']),
    ]
  })
}

function validatePortName(field: string, { name = '' }: ContainerPort, names: Set<string>): FieldError[] {
  if (name === '') return []
  const complaints = portName(name)
  if (complaints.length > 0) return complaining(field, name, complaints)
  if (names.has(name)) return [duplicate(field, name)]
  names.add(name)
  return []
}

/** No two of them on the same port of the node. */
function validateHostPorts(field: string, containers: readonly Container[]): FieldError[] {
  const taken = new Set<string>()
  return containers.flatMap(({ ports = [] }, at) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = '' }, portAt) => {
      if (hostPort === 0) return []
      const text = `${protocol}/${hostIP}/${hostPort}`
      if (taken.has(text)) return [duplicate(child(index(child(index(field, at), 'ports'), portAt), 'hostPort'), text)]
      taken.add(text)
      return []
    }),
  )
}
