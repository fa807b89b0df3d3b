/** Describes containers of pods and pod templates. */
import type { Container, ContainerPort, ContainerState, ContainerStatus, EnvVar, Pod, Probe } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { isZeroQuantity, parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { type ResourceList, sortedAmounts } from '#model/resource-lists.ts'

import { cells, nested, ifSet, orEmpty, type NestedRow, type Part, type Row, unlessEmpty } from './rows.ts'
import { byKey, listText, sortedBy } from './sections.ts'
import { dateText } from './times.ts'

/** A row for each container; undefined without containers. `pod` is absent for a template. */
export function containerRows(
  containers: readonly Container[] = [],
  statuses: readonly ContainerStatus[] = [],
  pod?: Pod,
): NestedRow[] | undefined {
  if (containers.length === 0) return undefined
  return containers.map((container) => {
    const status = statuses.find(({ name }) => name === container.name)
    return [container.name, partsOf(container, status, pod)]
  })
}

function partsOf(container: Container, status: ContainerStatus | undefined, pod: Pod | undefined): Part[] {
  const { image = '', ports = [], securityContext, livenessProbe, readinessProbe, startupProbe } = container
  const profile = securityContext?.seccompProfile
  return [
    ['Container ID', status && (status.containerID ?? '')],
    ['Image', image],
    ['Image ID', status && (status.imageID ?? '')],
    portRow(
      'Port',
      portsText(ports, ({ containerPort }) => containerPort),
    ),
    portRow(
      'Host Port',
      portsText(ports, ({ hostPort = 0 }) => hostPort),
    ),
    ['SeccompProfile', profile?.type],
    profile?.type === 'Localhost' ? nested(['LocalhostProfile', orEmpty(profile.localhostProfile)]) : undefined,
    ['Command', wordLines(container.command)],
    ['Args', wordLines(container.args)],
    ...(status === undefined ? [] : statusRows(status)),
    ...resourceRows(container.resources),
    ['Liveness', livenessProbe && probeText(livenessProbe)],
    ['Readiness', readinessProbe && probeText(readinessProbe)],
    ['Startup', startupProbe && probeText(startupProbe)],
    ...environmentRows(container, pod),
    ...mountRows(container),
  ]
}

function portRow(label: string, text: string): Row {
  return [text.includes(',') ? `${label}s` : label, text === '' ? '<none>' : text]
}

function portsText(ports: readonly ContainerPort[], portOf: (port: ContainerPort) => number): string {
  return ports
    .map((port) => `${portOf(port)}/${port.protocol ?? ''}${port.name === undefined ? '' : ` (${port.name})`}`)
    .join(', ')
}

function wordLines(words: readonly string[] = []): readonly Part[] | undefined {
  return unlessEmpty(words.flatMap((word) => word.split('\n')).map((line) => cells(line)))
}

interface Resources {
  readonly limits?: ResourceList
  readonly requests?: ResourceList
}

/** Limits and requests, if there are any. */
export function resourceRows({ limits, requests }: Resources = {}): Row[] {
  return [
    ['Limits', unlessEmpty(sortedAmounts(limits))],
    ['Requests', unlessEmpty(sortedAmounts(requests))],
  ]
}

function statusRows({ state, lastState, ready, restartCount }: ContainerStatus): Part[] {
  return [
    ...stateRows('State', state),
    ...(lastState?.terminated === undefined ? [] : stateRows('Last State', lastState)),
    ['Ready', ready ? 'True' : 'False'],
    ['Restart Count', restartCount],
  ]
}

function stateRows(label: string, { running, terminated, waiting }: ContainerState = {}): Part[] {
  if (running !== undefined) return [[label, 'Running'], nested(['Started', dateText(running.startedAt)])]
  if (waiting !== undefined || terminated === undefined) {
    return [[label, 'Waiting'], nested(['Reason', ifSet(waiting?.reason)])]
  }
  return [
    [label, 'Terminated'],
    nested(
      ['Reason', ifSet(terminated.reason)],
      ['Message', ifSet(terminated.message)],
      ['Exit Code', terminated.exitCode],
      ['Signal', ifSet(terminated.signal)],
      ['Started', dateText(terminated.startedAt)],
      ['Finished', dateText(terminated.finishedAt)],
    ),
  ]
}

function probeText(probe: Probe): string {
  const { initialDelaySeconds: delay = 0, timeoutSeconds: timeout = 0, periodSeconds: period = 0 } = probe
  const times = `delay=${delay}s timeout=${timeout}s period=${period}s`
  return `${actionText(probe)} ${times} #success=${probe.successThreshold ?? 0} #failure=${probe.failureThreshold ?? 0}`
}

function actionText({ exec, httpGet, tcpSocket, grpc }: Probe): string {
  if (exec !== undefined) return `exec ${listText(exec.command)}`
  if (httpGet !== undefined) {
    const { scheme = '', host = '', port, path = '' } = httpGet
    const joined = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    const separator = path === '' || path.startsWith('/') ? '' : '/'
    return `http-get ${scheme === '' ? '' : `${scheme.toLowerCase()}:`}//${joined}${separator}${encodePath(path)}`
  }
  if (tcpSocket !== undefined) return `tcp-socket ${tcpSocket.host ?? ''}:${tcpSocket.port}`
  return grpc === undefined ? 'unknown' : `grpc <pod>:${grpc.port} ${grpc.service ?? ''}`
}

/** Characters that Go escapes in a URL path. */
function encodePath(path: string): string {
  return encodeURI(path).replaceAll(/[?#]/g, encodeURIComponent).replaceAll('%25', '%25')
}

function environmentRows(container: Container, pod: Pod | undefined): Part[] {
  const { env = [], envFrom = [] } = container
  const sources = envFrom.map(({ configMapRef, secretRef, prefix = '' }) => {
    const source = configMapRef ?? secretRef
    const kind = configMapRef === undefined ? (secretRef === undefined ? '' : 'Secret') : 'ConfigMap'
    const how = prefix === '' ? kind : `${kind} with prefix '${prefix}'`
    return cells(source?.name ?? '', how, `Optional: ${source?.optional === true}`)
  })
  const variables = env.flatMap((variable) => variableRows(variable, container, pod))
  return [
    ['Environment Variables from', unlessEmpty(sources)],
    ['Environment', env.length === 0 ? '<none>' : variables],
  ]
}

function variableRows({ name, value = '', valueFrom }: EnvVar, container: Container, pod: Pod | undefined): Part[] {
  if (valueFrom === undefined) {
    return value.split('\n').map((line, at) => cells(at === 0 ? `${name}:` : '', line))
  }
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom
  if (fieldRef !== undefined) {
    const found = pod === undefined ? '' : fieldText(pod, fieldRef.fieldPath)
    return [[name, `${found} (${fieldRef.apiVersion ?? ''}:${fieldRef.fieldPath})`]]
  }
  if (resourceFieldRef !== undefined) {
    return [[name, `${resourceText(container, resourceFieldRef)} (${resourceFieldRef.resource})`]]
  }
  const key = secretKeyRef ?? configMapKeyRef
  if (key === undefined) return []
  const where = secretKeyRef === undefined ? 'of config map' : 'in secret'
  const text = `<set to the key '${key.key}' ${where} '${key.name ?? ''}'>`
  return [cells(`${name}:`, text, `Optional: ${key.optional === true}`)]
}

/** Upstream resolves these fields only; others, including some labels, stay empty. */
function fieldText({ metadata }: Pod, path: string): string {
  switch (path) {
    case 'metadata.name':
      return metadata.name ?? ''
    case 'metadata.namespace':
      return metadata.namespace ?? ''
    case 'metadata.uid':
      return metadata.uid ?? ''
    case 'metadata.labels':
      return mapText(metadata.labels)
    case 'metadata.annotations':
      return mapText(metadata.annotations)
    default:
      return ''
  }
}

function mapText(texts: Readonly<Record<string, string>> | undefined): string {
  return byKey(texts)
    .map(([key, value]) => `${key}=${goQuote(value)}`)
    .join('\n')
}

/** Without a limit a container may use all allocatable resources of the node. */
const UNBOUNDED = new Set(['limits.cpu', 'limits.memory'])

interface ResourceField {
  readonly resource: string
  readonly divisor?: string
}

function resourceText({ resources }: Container, { resource, divisor = '0' }: ResourceField): string {
  const [, part = '', name = ''] = /^(limits|requests)\.(.+)$/.exec(resource) ?? []
  if (!/^(?:cpu|memory|ephemeral-storage|hugepages-.+)$/.test(name)) return ''
  const { limits = {}, requests = {} } = resources ?? {}
  const list: ResourceList = part === 'limits' ? limits : requests
  const isCpu = name === 'cpu'
  const amount = (text: string): number => (isCpu ? quantityMilliValue : quantityValue)(parseQuantity(text))
  const unit = isZeroQuantity(parseQuantity(divisor)) ? '1' : divisor
  const value = Math.ceil(amount(list[name] ?? '0') / amount(unit))
  return value === 0 && UNBOUNDED.has(resource) ? 'node allocatable' : String(value)
}

function mountRows({ volumeMounts = [], volumeDevices = [] }: Container): Row[] {
  const mounts = sortedBy(volumeMounts, ({ mountPath }) => mountPath).map((mount) => {
    const path = (mount.subPath ?? '') === '' ? '' : `,path=${goQuote(mount.subPath ?? '')}`
    return `${mount.mountPath} from ${mount.name} (${mount.readOnly === true ? 'ro' : 'rw'}${path})`
  })
  const devices = sortedBy(volumeDevices, ({ devicePath }) => devicePath)
  const deviceRow: Row = ['Devices', devices.map(({ devicePath, name }) => `${devicePath} from ${name}`)]
  if (mounts.length > 0) return devices.length > 0 ? [['Mounts', mounts], deviceRow] : [['Mounts', mounts]]
  return [['Mounts', '<none>']]
}
