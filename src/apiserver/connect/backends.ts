/**
 * The servers requests are passed on to: kubelets, who are shown our certificate, and everything else, which is shown
 * nothing and of which nothing is known. Each kind has connections of its own, so that what is proven or checked for one
 * never serves another.
 */
import { lookup as systemLookup } from 'node:dns/promises'

import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { createLoopbackClient } from '#lib/http/loopback.ts'

import { allowedAddress, isGlobalUnicast, isKubeletAddress, type Network } from './address-rule.ts'

/** Certificates and key are PEM; without `ca` the kubelets' own are not checked. */
export interface KubeletTls {
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
}

export interface KubeletSettings {
  /** The same object until something in it changes; new connections go by the new one. */
  readonly tls: () => KubeletTls
  /** For Nodes that do not say. */
  readonly port: number
  /** Types of node addresses, in the order in which they are tried. */
  readonly addressTypes: readonly string[]
  /** How long a connection may take to be made. */
  readonly timeoutMs: number
}

export interface Backends {
  /** For logs, exec and the like. */
  readonly kubelet: HttpClient
  /** The same without a look at the kubelet's certificate, for those who ask for it. */
  readonly unverifiedKubelet: HttpClient
  /** For users' own requests to kubelets: not to those at a loopback address. */
  readonly proxiedKubelet: HttpClient
  /** For users' requests to pods, services and other ports of nodes. They are known by address only. */
  readonly other: HttpClient
  /** Throws StatusError 400 unless users' requests may go to this host. */
  check(host: string): Promise<void>
  close(): void
}

export interface BackendOptions {
  readonly clock: Clock
  readonly kubelet: KubeletSettings
  /** Default: the machine's. */
  readonly network?: Network
}

/** The machine's own. */
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
  const { kubeletDoor = () => undefined, routeTo = (address) => address } = network
  const toKubelets = { ...network, routeTo: (address: string) => kubeletDoor(address) ?? routeTo(address) }
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

/** Kubelets in this process are asked without a connection; they know that it is the server who asks. */
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
      // Nobody there has a connection to go on with.
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
