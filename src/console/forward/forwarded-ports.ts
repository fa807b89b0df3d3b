/** Which ports of a pod or Service can be forwarded, and the kubectl command that forwards one. */
import type { Pod, Service } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

export interface ForwardedPort {
  readonly port: number
  /** Empty: it has none. */
  readonly name: string
}

/** The TCP ports. Empty for pods that do not run and Services that select no pods. */
export function forwardedPorts(object: KubeObject): readonly ForwardedPort[] {
  const { kind, apiVersion, metadata } = object
  if (apiVersion !== 'v1' || metadata.deletionTimestamp !== undefined) return []
  if (kind === 'Pod') return portsOfPod(object as Pod)
  return kind === 'Service' ? portsOfService(object as Service) : []
}

function portsOfPod({ spec, status }: Pod): readonly ForwardedPort[] {
  if (status.phase !== 'Running') return []
  const ports = [...spec.containers, ...(spec.initContainers ?? [])].flatMap((container) => container.ports ?? [])
  const tcp = ports.filter(({ protocol = 'TCP' }) => protocol === 'TCP')
  const byNumber = new Map(tcp.map(({ containerPort, name = '' }) => [containerPort, { port: containerPort, name }]))
  return [...byNumber.values()]
}

function portsOfService({ spec }: Service): readonly ForwardedPort[] {
  if (spec.type === 'ExternalName' || Object.keys(spec.selector ?? {}).length === 0) return []
  return (spec.ports ?? [])
    .filter(({ protocol = 'TCP' }) => protocol === 'TCP')
    .map(({ port, name = '' }) => ({ port, name }))
}

/** Programs of people may not listen on ports below this one. */
const FIRST_FREE = 1024
const LIFTED = 8000

export function kubectlCommand(
  { kind = '', metadata }: KubeObject,
  { port }: ForwardedPort,
  kubeconfig: string,
): string {
  const { name = '', namespace = 'default' } = metadata
  const local = port < FIRST_FREE ? port + LIFTED : port
  const pair = local === port ? String(port) : `${local}:${port}`
  return `kubectl --kubeconfig ${quoted(kubeconfig)} port-forward -n ${namespace} ${kind.toLowerCase()}/${name} ${pair}`
}

/** For shells. */
function quoted(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
