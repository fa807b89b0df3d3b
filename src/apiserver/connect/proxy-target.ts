/**
 * The target of a proxied request: resolves `name`, `name:port` or `scheme:name:port` of a pod, service or node to an
 * address.
 */
import { type EndpointAddress, Endpoints, type Service, Services } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { shuffle } from '#lib/random.ts'
import { badRequestError, notFoundError, serviceUnavailableError } from '#meta/status-errors.ts'

import type { ObjectReader } from '../registry/resource.ts'
import { isGlobalUnicast } from './address-rule.ts'
import { type ConnectContext, podOf } from './context.ts'
import { hostPort, kubeletOf } from './kubelet-location.ts'

export interface ProxyTarget {
  readonly client: HttpClient
  readonly scheme: 'http' | 'https'
  /** Host and port, as in a URL. */
  readonly host: string
}

/** The request's name, and the dependencies for resolving it. */
export interface ProxyRequest {
  readonly id: string
  readonly namespace: string
  readonly objects: ObjectReader
  readonly context: ConnectContext
}

interface NamedPort {
  readonly scheme: 'http' | 'https'
  readonly name: string
  /** Empty: not given. */
  readonly port: string
}

/** Throws StatusError 400; `what` is the kind in words. */
function splitTarget(id: string, what: 'pod' | 'service' | 'node'): NamedPort {
  const parts = id.split(':')
  const [scheme = '', name = '', port = ''] = parts.length < 3 ? ['', ...parts] : parts
  const isKnown = scheme === '' || scheme === 'http' || scheme === 'https'
  if (parts.length > 3 || name === '' || !isKnown) throw badRequestError(`invalid ${what} request ${goQuote(id)}`)
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port }
}

/** The pod's address. Loopback and link-local addresses are rejected. */
export async function podTarget({ id, namespace, objects, context }: ProxyRequest): Promise<ProxyTarget> {
  const { scheme, name, port } = splitTarget(id, 'pod')
  const pod = await podOf(objects, namespace, name)
  const first = pod.spec?.containers.find(({ ports = [] }) => ports.length > 0)?.ports?.[0]
  const wanted = port === '' ? String(first?.containerPort ?? '') : port
  const ip = pod.status?.podIPs?.[0]?.ip ?? ''
  if (!isGlobalUnicast(ip)) throw badRequestError('address not allowed')
  // The default port is the scheme's.
  const host = wanted === '' ? (ip.includes(':') ? `[${ip}]` : ip) : hostPort(ip, checkedPort(wanted))
  return { client: context.backends.other, scheme, host }
}

/** A random ready endpoint of the service. */
export async function serviceTarget({ id, namespace, objects, context }: ProxyRequest): Promise<ProxyTarget> {
  const { scheme, name, port } = splitTarget(id, 'service')
  const portName = /^[+-]?\d+$/.test(port) ? await portNameOf(objects, namespace, name, Number(port)) : port
  const endpoints = await objects.get<Endpoints>(Endpoints, namespace, name)
  if (endpoints === undefined) throw notFoundError({ group: '', resource: 'services' }, name)
  const { subsets = [] } = endpoints
  const none = (what: string): Error => serviceUnavailableError(`no endpoints available for service ${goQuote(what)}`)
  if (subsets.length === 0) throw none(name)
  for (const { addresses = [], ports = [] } of shuffle(context.random, subsets)) {
    const found = ports.find((one) => (one.name ?? '') === portName)
    if (found === undefined) continue
    for (const address of shuffle(context.random, addresses)) {
      if (!(await isPodOf(address, namespace, objects))) continue
      return { client: context.backends.other, scheme, host: hostPort(address.ip, found.port) }
    }
  }
  throw none(id)
}

async function portNameOf(objects: ObjectReader, namespace: string, name: string, port: number): Promise<string> {
  const service = await objects.get<Service>(Services, namespace, name)
  if (service === undefined) throw notFoundError({ group: '', resource: 'services' }, name)
  const found = service.spec?.ports?.find((one) => one.port === port)
  if (found !== undefined) return found.name ?? ''
  throw serviceUnavailableError(`no service port ${port} found for service ${goQuote(name)}`)
}

/** Writers of endpoints could enter any address: only addresses of pods in the same namespace count. */
async function isPodOf({ ip, targetRef }: EndpointAddress, namespace: string, objects: ObjectReader): Promise<boolean> {
  if (targetRef === undefined || targetRef.namespace !== namespace) return false
  const pod = await podOf(objects, namespace, targetRef.name ?? '').catch(() => undefined)
  return pod?.status?.podIPs?.some((one) => one.ip === ip) === true
}

/** The kubelet itself with the server's certificate, or another port of its machine without. */
export async function nodeTarget({ id, objects, context }: ProxyRequest): Promise<ProxyTarget> {
  const { scheme, name, port } = splitTarget(id, 'node')
  const { kubelet, backends } = context
  const location = await kubeletOf(name, objects, kubelet)
  await backends.check(location.host)
  if (port === '' || port === String(location.port)) {
    return { client: backends.proxiedKubelet, scheme: 'https', host: hostPort(location.host, location.port) }
  }
  return { client: backends.other, scheme, host: hostPort(location.host, checkedPort(port)) }
}

/** A port must be a number, because it becomes part of a URL. */
function checkedPort(port: string): string {
  if (/^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) < 65_536) return port
  throw serviceUnavailableError(`error trying to reach service: dial tcp: lookup tcp/${port}: unknown port`)
}
