/** Containers of pods and of templates of pods. */
import type { Container, ContainerPort, ContainerState, ContainerStatus, EnvVar, Pod, Probe } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { isZeroQuantity, parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import { type ResourceList, sortedAmounts } from '#model/resource-lists.ts'

import type { Page } from './page.ts'
import { byKey, listText } from './sections.ts'
import { dateText } from './times.ts'

export interface ContainersPart {
  readonly label: string
  readonly containers: readonly Container[] | undefined
  readonly statuses?: readonly ContainerStatus[] | undefined
  /** Whose they are; none for a template. */
  readonly pod?: Pod
  /** Before the label, in a template. */
  readonly margin?: string
}

export function putContainers(page: Page, part: ContainersPart): void {
  const { label, containers = [], statuses = [], pod, margin = '' } = part
  page.put(0, `${margin}${label}:${containers.length === 0 ? ' <none>' : ''}\n`)
  for (const container of containers) {
    const status = statuses.find(({ name }) => name === container.name)
    page.put(1, `${margin === '' ? '' : ' '}${container.name}:\n`)
    putBasics(page, container, status)
    putWords(page, 'Command', container.command)
    putWords(page, 'Args', container.args)
    if (status !== undefined) putStatus(page, status)
    putResources(page, 2, container.resources)
    putProbes(page, container)
    putEnvironment(page, container, pod)
    putMounts(page, container)
  }
}

function putBasics(page: Page, container: Container, status: ContainerStatus | undefined): void {
  const { image = '', ports = [], securityContext } = container
  page.rows(2, [
    ['Container ID', status && (status.containerID ?? '')],
    ['Image', image],
    ['Image ID', status && (status.imageID ?? '')],
  ])
  putPorts(
    page,
    'Port',
    portsText(ports, ({ containerPort }) => containerPort),
  )
  putPorts(
    page,
    'Host Port',
    portsText(ports, ({ hostPort = 0 }) => hostPort),
  )
  const profile = securityContext?.seccompProfile
  if (profile === undefined) return
  page.row(2, 'SeccompProfile', profile.type)
  if (profile.type === 'Localhost') page.row(3, 'LocalhostProfile', profile.localhostProfile ?? '')
}

function putPorts(page: Page, label: string, text: string): void {
  page.row(2, text.includes(',') ? `${label}s` : label, text === '' ? '<none>' : text)
}

function portsText(ports: readonly ContainerPort[], portOf: (port: ContainerPort) => number): string {
  return ports
    .map((port) => `${portOf(port)}/${port.protocol ?? ''}${port.name === undefined ? '' : ` (${port.name})`}`)
    .join(', ')
}

function putWords(page: Page, label: string, words: readonly string[] = []): void {
  if (words.length === 0) return
  page.put(2, `${label}:\n`)
  for (const line of words.flatMap((word) => word.split('\n'))) page.line(3, line)
}

interface Resources {
  readonly limits?: ResourceList
  readonly requests?: ResourceList
}

/** Limits and requests, where there are some. */
export function putResources(page: Page, level: number, resources: Resources | undefined): void {
  for (const [label, list] of [
    ['Limits', resources?.limits],
    ['Requests', resources?.requests],
  ] as const) {
    const amounts = sortedAmounts(list)
    if (amounts.length > 0) page.put(level, `${label}:\n`)
    page.rows(level + 1, amounts)
  }
}

function putStatus(page: Page, { state, lastState, ready, restartCount }: ContainerStatus): void {
  putState(page, 'State', state)
  if (lastState?.terminated !== undefined) putState(page, 'Last State', lastState)
  page.row(2, 'Ready', ready ? 'True' : 'False')
  page.row(2, 'Restart Count', restartCount)
}

function putState(page: Page, label: string, { running, terminated, waiting }: ContainerState = {}): void {
  if (running !== undefined) {
    page.row(2, label, 'Running')
    page.row(3, 'Started', dateText(running.startedAt))
  } else if (waiting === undefined && terminated !== undefined) {
    page.row(2, label, 'Terminated')
    page.rows(3, [
      ['Reason', terminated.reason || undefined],
      ['Message', terminated.message || undefined],
      ['Exit Code', terminated.exitCode],
      ['Signal', terminated.signal || undefined],
      ['Started', dateText(terminated.startedAt)],
      ['Finished', dateText(terminated.finishedAt)],
    ])
  } else {
    page.row(2, label, 'Waiting')
    page.row(3, 'Reason', waiting?.reason || undefined)
  }
}

function putProbes(page: Page, { livenessProbe, readinessProbe, startupProbe }: Container): void {
  page.rows(2, [
    ['Liveness', livenessProbe && probeText(livenessProbe)],
    ['Readiness', readinessProbe && probeText(readinessProbe)],
    ['Startup', startupProbe && probeText(startupProbe)],
  ])
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

/** What Go escapes in the path of a URL. */
function encodePath(path: string): string {
  return encodeURI(path).replaceAll(/[?#]/g, encodeURIComponent).replaceAll('%25', '%25')
}

function putEnvironment(page: Page, container: Container, pod: Pod | undefined): void {
  const { env = [], envFrom = [] } = container
  if (envFrom.length > 0) page.put(2, 'Environment Variables from:\n')
  for (const { configMapRef, secretRef, prefix = '' } of envFrom) {
    const source = configMapRef ?? secretRef
    const kind = configMapRef === undefined ? (secretRef === undefined ? '' : 'Secret') : 'ConfigMap'
    const how = prefix === '' ? kind : `${kind} with prefix '${prefix}'`
    page.line(3, source?.name ?? '', how, `Optional: ${source?.optional === true}`)
  }
  page.put(2, `Environment:${env.length === 0 ? '\t<none>' : ''}\n`)
  for (const variable of env) putVariable(page, variable, container, pod)
}

function putVariable(page: Page, variable: EnvVar, container: Container, pod: Pod | undefined): void {
  const { name, value = '', valueFrom } = variable
  if (valueFrom === undefined) {
    for (const [at, line] of value.split('\n').entries()) page.line(3, at === 0 ? `${name}:` : '', line)
    return
  }
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom
  if (fieldRef !== undefined) {
    const found = pod === undefined ? '' : fieldText(pod, fieldRef.fieldPath)
    page.row(3, name, `${found} (${fieldRef.apiVersion ?? ''}:${fieldRef.fieldPath})`)
  } else if (resourceFieldRef !== undefined) {
    page.row(3, name, `${resourceText(container, resourceFieldRef)} (${resourceFieldRef.resource})`)
  } else {
    putKeyReference(page, name, secretKeyRef, configMapKeyRef)
  }
}

interface KeyReference {
  readonly name?: string
  readonly key: string
  readonly optional?: boolean
}

function putKeyReference(page: Page, name: string, secret?: KeyReference, configMap?: KeyReference): void {
  const found = secret ?? configMap
  if (found === undefined) return
  const where = secret === undefined ? 'of config map' : 'in secret'
  page.line(
    3,
    `${name}:`,
    `<set to the key '${found.key}' ${where} '${found.name ?? ''}'>`,
    `Optional: ${found.optional === true}`,
  )
}

/** What upstream looks up for it; the rest, one label among them, stays open. */
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

/** Without a limit a container may use all that the node has. */
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

function putMounts(page: Page, { volumeMounts = [], volumeDevices = [] }: Container): void {
  const none = volumeMounts.length === 0 ? '\t<none>' : ''
  page.put(2, `Mounts:${none}\n`)
  for (const { mountPath, name, readOnly, subPath = '' } of sorted(volumeMounts, (mount) => mount.mountPath)) {
    const path = subPath === '' ? '' : `,path=${goQuote(subPath)}`
    page.line(3, `${mountPath} from ${name} (${readOnly === true ? 'ro' : 'rw'}${path})`)
  }
  if (volumeDevices.length === 0) return
  page.put(2, `Devices:${none}\n`)
  for (const { devicePath, name } of sorted(volumeDevices, (device) => device.devicePath)) {
    page.line(3, `${devicePath} from ${name}`)
  }
}

function sorted<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return [...items].sort((one, other) => Number(keyOf(one) > keyOf(other)) - Number(keyOf(one) < keyOf(other)))
}
