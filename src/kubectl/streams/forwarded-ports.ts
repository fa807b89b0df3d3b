/** Parses `port-forward` arguments: local and remote ports, port names and listen addresses. Pure. */
import { isIP } from 'node:net'

import type { Pod, Service } from '#apis/core/v1.ts'
import { compareText, goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'

export interface ForwardedPort {
  /** 0 selects a free port. */
  readonly local: number
  readonly remote: number
}

/** `8080:80`, `:80` or `80`. Throws KubectlError. */
export function parsePorts(texts: readonly string[]): ForwardedPort[] {
  return texts.map((text) => {
    const parts = text.split(':')
    const [first = '', second = first] = parts
    if (parts.length > 2) throw new KubectlError(`invalid port format '${text}'`)
    const local = portIn('local', parts.length === 2 && first === '' ? '0' : first)
    const remote = portIn('remote', second)
    if (remote === 0) throw new KubectlError('remote port must be > 0')
    return { local, remote }
  })
}

function portIn(which: 'local' | 'remote', text: string): number {
  const isNumber = /^\d+$/.test(text)
  if (isNumber && Number(text) <= 65535) return Number(text)
  const reason = isNumber ? 'value out of range' : 'invalid syntax'
  throw new KubectlError(
    `error parsing ${which} port '${text}': strconv.ParseUint: parsing ${goQuote(text)}: ${reason}`,
  )
}

export interface ListenAddress {
  readonly address: string
  /** One address of the group suffices: `localhost` is two addresses. */
  readonly isOneEnough: boolean
}

const LOCALHOST: ListenAddress[] = ['127.0.0.1', '::1'].map((address) => ({ address, isOneEnough: true }))

/** Throws KubectlError. */
export function parseAddresses(texts: readonly string[]): ListenAddress[] {
  const wanted = texts.flatMap((address): ListenAddress[] => {
    if (address === 'localhost') return LOCALHOST
    if (isIP(address) === 0) throw new KubectlError(`${address} is not a valid IP`)
    return [{ address, isOneEnough: false }]
  })
  // Explicit addresses must be available.
  wanted.sort((one, other) => Number(other.isOneEnough) - Number(one.isOneEnough))
  const found = new Map(wanted.map((one) => [one.address, one]))
  return [...found.values()].sort((one, other) => compareText(one.address, other.address))
}

function split(text: string): [local: string, remote: string] {
  const parts = text.split(':')
  return parts.length === 2 ? (parts as [string, string]) : [parts[0] ?? '', parts[0] ?? '']
}

function joined(local: string, remote: string, number: number): string {
  return local === remote ? String(number) : `${local}:${number}`
}

interface NamedPort {
  readonly name?: string
  readonly protocol?: string
  readonly number: number
}

function portsOfPod({ spec }: Pod): NamedPort[] {
  return spec.containers.flatMap(({ ports = [] }) =>
    ports.map(({ name, protocol, containerPort }) => ({
      number: containerPort,
      ...(name !== undefined && { name }),
      ...(protocol !== undefined && { protocol }),
    })),
  )
}

function numberIn(text: string): number | undefined {
  return /^[+-]?\d+$/.test(text) ? Number(text) : undefined
}

function podPort(pod: Pod, name: string): number {
  const found = portsOfPod(pod).find((port) => port.name === name)
  if (found !== undefined) return found.number
  throw new KubectlError(`Pod '${pod.metadata.name ?? ''}' does not have a named port '${name}'`)
}

/** Resolves port names of a pod. Throws KubectlError. */
export function portsInPod(texts: readonly string[], pod: Pod): string[] {
  const lookUp = (name: string): number => podPort(pod, name)
  checkProtocols(texts, portsOfPod(pod), lookUp)
  return texts.map((text) => {
    const [local, remote] = split(text)
    if (remote === '') throw new KubectlError('remote port cannot be empty')
    return joined(local, remote, numberIn(remote) ?? lookUp(remote))
  })
}

/** Translates ports of a service to ports of its pod. Throws KubectlError. */
export function portsBehind(texts: readonly string[], service: Service, pod: Pod): string[] {
  const { name: serviceName = '' } = service.metadata
  const { ports = [], clusterIP = '' } = service.spec ?? {}
  const lookUp = (name: string): number => {
    const found = ports.find((port) => port.name === name)
    if (found !== undefined) return found.port
    throw new KubectlError(`Service '${serviceName}' does not have a named port '${name}'`)
  }
  checkProtocols(
    texts,
    ports.map(({ port, protocol }) => ({ number: port, ...(protocol !== undefined && { protocol }) })),
    lookUp,
  )
  return texts.map((text) => {
    const [given, remote] = split(text)
    const number = numberIn(remote) ?? lookUp(remote)
    const local = given === remote ? String(number) : given
    const found = ports.find(({ port }) => port === number)
    if (found === undefined) throw new KubectlError(`Service ${serviceName} does not have a service port ${number}`)
    // The server defaults targetPort; without it the port number applies.
    const targetPort = found.targetPort || number
    const target =
      clusterIP === 'None' ? number : typeof targetPort === 'string' ? podPort(pod, targetPort) : targetPort
    return local === String(target) ? local : `${local}:${target}`
  })
}

/** Only TCP ports can be forwarded. */
function checkProtocols(texts: readonly string[], ports: readonly NamedPort[], lookUp: (name: string) => number): void {
  const of = (protocol: string): Set<number> =>
    new Set(ports.filter((port) => (port.protocol ?? 'TCP') === protocol).map(({ number }) => number))
  const [udp, tcp] = [of('UDP'), of('TCP')]
  for (const text of texts) {
    const [, remote] = split(text)
    const number = numberIn(remote) ?? (remote === '' ? 0 : lookUp(remote))
    if (udp.has(number) && !tcp.has(number)) throw new KubectlError(`UDP protocol is not supported for ${remote}`)
  }
}
