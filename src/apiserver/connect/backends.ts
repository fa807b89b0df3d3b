/**
 * The connections to backends of proxied requests. The server presents its client certificate only to kubelets, so
 * kubelets and other backends never share a connection.
 */
import { lookup as systemLookup } from 'node:dns/promises'

import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { createLoopbackClient } from '#lib/http/loopback.ts'

import { allowedAddress, isGlobalUnicast, isKubeletAddress, type Network } from './address-rule.ts'

/** Certificates and key are PEM; without `ca` kubelet certificates are not verified. */
export interface KubeletTls {
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
}

export interface KubeletSettings {
  /** Returns the same object until something changes; new connections use the new one. */
  readonly tls: () => KubeletTls
  /** The port for Nodes without one. */
  readonly port: number
  /** Types of node addresses in order of preference. */
  readonly addressTypes: readonly string[]
  /** The connection timeout. */
  readonly timeoutMs: number
}

export interface Backends {
  /** For logs, exec and the like. */
  readonly kubelet: HttpClient
  /** Without verification of the kubelet's certificate, for clients that ask for it. */
  readonly unverifiedKubelet: HttpClient
  /** For users' own requests to kubelets: rejects loopback addresses. */
  readonly proxiedKubelet: HttpClient
  /** For users' requests to pods, services and other ports of nodes. */
  readonly other: HttpClient
  /** Throws StatusError 400 unless users' requests may go to this host. */
  check(host: string): Promise<void>
  close(): void
}

export interface BackendOptions {
  readonly clock: Clock
  readonly kubelet: KubeletSettings
  /** The machine's resolver by default. */
  readonly network?: Network
}

/** The machine's resolver. */
export const systemNetwork: Network = {
  async lookup(host) {
    const found = await systemLookup(host, { all: true })
    return found.map(({ address }) => address)
  },
}

export function createBackends({ clock, kubelet, network = systemNetwork }: BackendOptions): Backends {
  const open = (tls: ClientTls, isAllowed: (address: string) => boolean, by: Network = network): HttpClient =>
    createHttpClient({
      clock,
      tls,
      connectTimeoutMs: kubelet.timeoutMs,
      resolve: (host) => allowedAddress(host, by, isAllowed),
    })
  const { kubeletAddress = () => undefined, routeTo = (address) => address } = network
  const toKubelets = { ...network, routeTo: (address: string) => kubeletAddress(address) ?? routeTo(address) }
  const openKubelet = (tls: ClientTls, isAllowed: (address: string) => boolean): HttpClient =>
    nearFirst(open(tls, isAllowed, toKubelets), network, clock)
  let tls = kubelet.tls()
  const clients = {
    kubelet: openKubelet(verified(tls), isKubeletAddress),
    unverifiedKubelet: openKubelet(unverified(tls), isKubeletAddress),
    proxiedKubelet: openKubelet(verified(tls), isGlobalUnicast),
    other: open({ insecure: true }, isGlobalUnicast),
  }
  const current = (): typeof clients => {
    const now = kubelet.tls()
    if (now === tls) return clients
    tls = now
    clients.kubelet.reloadTls(verified(tls))
    clients.unverifiedKubelet.reloadTls(unverified(tls))
    clients.proxiedKubelet.reloadTls(verified(tls))
    return clients
  }
  return {
    get kubelet() {
      return current().kubelet
    },
    get unverifiedKubelet() {
      return current().unverifiedKubelet
    },
    get proxiedKubelet() {
      return current().proxiedKubelet
    },
    other: clients.other,
    check: async (host) => void (await allowedAddress(host, network, isGlobalUnicast)),
    close: () => Object.values(clients).forEach((client) => client.close()),
  }
}

/** Calls kubelets of this process without a connection; they trust the caller as the API server. */
function nearFirst(far: HttpClient, { kubeletAt }: Network, clock: Clock): HttpClient {
  if (kubeletAt === undefined) return far
  const near = ({ url }: HttpRequest): Pick<HttpClient, 'request'> | undefined => {
    const serve = kubeletAt(new URL(url).hostname)
    return serve === undefined ? undefined : createLoopbackClient({ serve, clock, identity: undefined })
  }
  return {
    ...far,
    request: (request) => (near(request) ?? far).request(request),
    async upgrade(request) {
      const client = near(request)
      // A call without a connection cannot be upgraded.
      return client === undefined
        ? far.upgrade(request)
        : { isUpgraded: false, response: await client.request(request) }
    },
  }
}

function verified(tls: KubeletTls): ClientTls {
  return tls.ca === undefined ? unverified(tls) : tls
}

function unverified(tls: KubeletTls): ClientTls {
  return { ...tls, insecure: true }
}
