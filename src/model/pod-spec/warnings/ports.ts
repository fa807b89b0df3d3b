/** Warns about conflicting container ports of a pod. */
import type { ContainerPort } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { FieldPath } from '#meta/validation/field-path.ts'

import type { PlacedContainer } from '../walk.ts'

/** The maximum number of comparisons per port. */
const MAX_COMPARED = 64

interface PlacedPort {
  readonly port: ContainerPort
  readonly path: FieldPath
}

export function portWarnings(containers: readonly PlacedContainer[]): string[] {
  const ports = containers.flatMap(({ container, path }) =>
    (container.ports ?? []).map((port, at) => ({ port, path: path.child('ports').index(at) })),
  )
  return [...clashWarnings(ports), ...nameWarnings(ports)]
}

function clashWarnings(ports: readonly PlacedPort[]): string[] {
  const seen = new Map<string, PlacedPort[]>()
  return ports.flatMap((placed) => {
    const { port, path } = placed
    const { hostIP = '', hostPort = 0, containerPort, protocol = '' } = port
    const warnings = hostIP !== '' && hostPort === 0 ? [`${path}: hostIP set without hostPort: ${portText(port)}`] : []
    const number = `${containerPort}/${protocol}`
    const others = seen.get(number) ?? []
    for (const other of others) {
      const clash = clashOf(port, other.port)
      if (clash !== undefined) warnings.push(`${path}: ${clash} port definition with ${other.path}`)
    }
    if (others.length < MAX_COMPARED) seen.set(number, [...others, placed])
    return warnings
  })
}

/** Go's `%+v` of the port. */
function portText({ name = '', hostPort = 0, containerPort, protocol = '', hostIP = '' }: ContainerPort): string {
  return `{Name:${name} HostPort:${hostPort} ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`
}

function clashOf(one: ContainerPort, other: ContainerPort): string | undefined {
  const [port, otherPort] = [one.hostPort ?? 0, other.hostPort ?? 0]
  const [ip, otherIp] = [one.hostIP ?? '', other.hostIP ?? '']
  if (ip === otherIp && port === otherPort) return 'duplicate'
  if (port === 0 || otherPort === 0) return 'overlapping'
  const oneOpen = (ip === '') !== (otherIp === '')
  return port === otherPort && oneOpen ? 'dangerously ambiguous' : undefined
}

function nameWarnings(ports: readonly PlacedPort[]): string[] {
  const seen = new Map<string, FieldPath>()
  return ports.flatMap(({ port: { name = '' }, path }) => {
    if (name === '') return []
    const other = seen.get(name)
    if (other === undefined) {
      seen.set(name, path)
      return []
    }
    const use = `services and probes that select ports by name will use ${other}`
    return [`${path}: duplicate port name ${goQuote(name)} with ${other}, ${use}`]
  })
}
