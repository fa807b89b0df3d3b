/** Summary of the containers of a pod or of a pod template. */
import type { Container, ContainerStatus, EnvVar, Pod, PodSpec, Probe } from '#apis/core/v1.ts'

import { endReason } from '../objects/state-of.ts'
import type { Tone } from '../parts/tone.ts'
import { type Cell, fields, type FieldsSection, link, pairs, since, type Value } from './section.ts'

/** Every container, those that run first in front. `pod` has the states, if there is a pod already. */
export function containerSections(
  spec: PodSpec,
  namespace: string,
  pod?: Pick<Pod, 'status'>,
): readonly FieldsSection[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod?.status ?? {}
  const statuses = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
  const statusOf = (name: string): ContainerStatus | undefined => statuses.find((one) => one.name === name)
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  const draw = (title: string, all: readonly Container[]): FieldsSection[] =>
    all.map((container) => sectionOf(title, container, statusOf(container.name), namespace))
  return [
    ...draw('Init container', initContainers),
    ...draw('Container', containers),
    ...draw('Debug container', ephemeralContainers),
  ]
}

function sectionOf(
  title: string,
  container: Container,
  status: ContainerStatus | undefined,
  namespace: string,
): FieldsSection {
  const state = status === undefined ? undefined : containerState(status)
  const { resources } = container
  return fields(
    `${title} ${container.name}`,
    [
      ['State', state],
      ['Last exit', status && lastExit(status)],
      ['Restarts', status?.restartCount],
      ['Image', container.image],
      ['Command', [...(container.command ?? []), ...(container.args ?? [])].join(' ')],
      [
        'Ports',
        (container.ports ?? []).map(
          ({ containerPort, protocol = 'TCP', name = '' }) =>
            `${containerPort}/${protocol}${name === '' ? '' : ` ${name}`}`,
        ),
      ],
      ['Requests', pairs(resources.requests)],
      ['Limits', pairs(resources.limits)],
      ['Startup probe', probeText(container.startupProbe)],
      ['Readiness probe', probeText(container.readinessProbe)],
      ['Liveness probe', probeText(container.livenessProbe)],
      [
        'Mounts',
        (container.volumeMounts ?? []).map(
          ({ mountPath, name, readOnly }) => `${mountPath} from ${name}${readOnly === true ? ' (read only)' : ''}`,
        ),
      ],
      [
        'Environment',
        [...envFrom(container, namespace), ...(container.env ?? []).map((one) => envText(one, namespace))],
      ],
    ],
    state?.tone,
  )
}

/** The state of a container with its reason. */
export function containerState({ state, ready }: ContainerStatus): Value & { readonly tone: Tone | undefined } {
  const { running, waiting, terminated } = state
  if (waiting !== undefined) {
    const { reason = 'Waiting', message = '' } = waiting
    const isStarting = reason === 'ContainerCreating' || reason === 'PodInitializing'
    return { text: join(reason, message), tone: isStarting ? 'busy' : 'bad' }
  }
  if (terminated !== undefined) {
    const { exitCode, message = '' } = terminated
    return {
      text: join(`${endReason(terminated)}, exit code ${exitCode}`, message),
      tone: exitCode === 0 ? 'good' : 'bad',
    }
  }
  if (running === undefined) return { text: 'Waiting', tone: 'busy' }
  return ready ? { text: 'Running', tone: 'good' } : { text: 'Running, not ready', tone: 'busy' }
}

function join(reason: string, message: string): string {
  return message === '' ? reason : `${reason}: ${message}`
}

function lastExit({ lastState }: ContainerStatus): Cell {
  const { terminated } = lastState
  if (terminated === undefined) return undefined
  const { exitCode, finishedAt, message = '' } = terminated
  const text: Value = {
    text: join(`${endReason(terminated)}, exit code ${exitCode}`, message),
    tone: exitCode === 0 ? undefined : 'bad',
  }
  const ended = since(finishedAt ?? undefined)
  return ended === undefined ? text : [text, ended]
}

/** `GET :8080/healthz every 10s, 3 failures, after 5s`. */
export function probeText(probe: Probe | undefined): string | undefined {
  if (probe === undefined) return undefined
  const { initialDelaySeconds = 0, periodSeconds = 10, timeoutSeconds = 1, failureThreshold = 3 } = probe
  const delay = initialDelaySeconds > 0 ? `, first after ${initialDelaySeconds}s` : ''
  return `${probeTarget(probe)} every ${periodSeconds}s, timeout ${timeoutSeconds}s, fails after ${failureThreshold}${delay}`
}

function probeTarget({ httpGet, tcpSocket, grpc, exec }: Probe): string {
  if (httpGet !== undefined) return `${httpGet.scheme ?? 'HTTP'} GET :${httpGet.port}${httpGet.path ?? '/'}`
  if (tcpSocket !== undefined) return `TCP :${tcpSocket.port}`
  if (grpc !== undefined) return `gRPC :${grpc.port}`
  return `exec ${(exec?.command ?? []).join(' ')}`
}

function envFrom({ envFrom: sources = [] }: Container, namespace: string): readonly Value[] {
  return sources.flatMap(({ configMapRef, secretRef, prefix = '' }) => {
    const all = `all keys${prefix === '' ? '' : ` with prefix ${prefix}`} of`
    if (configMapRef?.name !== undefined)
      return [named(`${all} ConfigMap`, link('v1', 'ConfigMap', configMapRef.name, namespace))]
    return secretRef?.name === undefined
      ? []
      : [named(`${all} Secret`, link('v1', 'Secret', secretRef.name, namespace))]
  })
}

/** Values of Secrets are not part of the spec, so only their names are here. */
function envText({ name, value, valueFrom }: EnvVar, namespace: string): string | Value {
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = valueFrom ?? {}
  if (secretKeyRef !== undefined) {
    const { name: secret = '', key } = secretKeyRef
    return named(`${name}= key ${key} of Secret`, link('v1', 'Secret', secret, namespace))
  }
  if (configMapKeyRef !== undefined) {
    const { name: map = '', key } = configMapKeyRef
    return named(`${name}= key ${key} of ConfigMap`, link('v1', 'ConfigMap', map, namespace))
  }
  if (fieldRef !== undefined) return `${name}= field ${fieldRef.fieldPath}`
  if (resourceFieldRef !== undefined) return `${name}= ${resourceFieldRef.resource}`
  return `${name}=${value ?? ''}`
}

function named(words: string, value: Value): Value {
  return { ...value, text: `${words} ${value.text}` }
}
