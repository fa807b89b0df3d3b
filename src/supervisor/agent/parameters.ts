/** The parameters of an agent, and the description of this machine for the server. */
import { ProgramError } from '#lib/program.ts'

import type { Host } from '../host.ts'

export const NODE_ROLES = ['etcd', 'controlplane', 'worker'] as const
export type NodeRole = (typeof NODE_ROLES)[number]

export interface AgentSettings {
  /** `https://manager.example`. */
  readonly server: string
  readonly token: string
  /** SHA-256, in hex, of the server's certificate authority; empty: the public authorities are trusted. */
  readonly caChecksum: string
  readonly nodeName: string
  /** The roles of this machine in the cluster. */
  readonly roles: readonly NodeRole[]
  /** Addresses, or keywords for their source; empty: no external address, and the address of the default route. */
  readonly address: string
  readonly internalAddress: string
  readonly labels: Readonly<Record<string, string>>
  /** `key=value:effect`. */
  readonly taints: readonly string[]
}

interface AddressSource {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

const METADATA = 'http://169.254.169.254'
const AZURE = `${METADATA}/metadata/instance/network/interface/0/ipv4/ipAddress/0`
const AZURE_FORM = '?api-version=2017-08-01&format=text'
const GOOGLE = `http://metadata.google.internal/computeMetadata/v1/instance/network-interfaces/0`
const PACKET = 'https://metadata.packet.net/2009-04-04/meta-data'
const azure = { Metadata: 'true' }
const google = { 'Metadata-Flavor': 'Google' }

/** Keywords for addresses and the services that provide them. */
export const ADDRESS_SOURCES: Readonly<Record<string, AddressSource>> = {
  awslocal: { url: `${METADATA}/latest/meta-data/local-ipv4` },
  awspublic: { url: `${METADATA}/latest/meta-data/public-ipv4` },
  doprivate: { url: `${METADATA}/metadata/v1/interfaces/private/0/ipv4/address` },
  dopublic: { url: `${METADATA}/metadata/v1/interfaces/public/0/ipv4/address` },
  azprivate: { url: `${AZURE}/privateIpAddress${AZURE_FORM}`, headers: azure },
  azpublic: { url: `${AZURE}/publicIpAddress${AZURE_FORM}`, headers: azure },
  gceinternal: { url: `${GOOGLE}/ip`, headers: google },
  gceexternal: { url: `${GOOGLE}/access-configs/0/external-ip`, headers: google },
  packetlocal: { url: `${PACKET}/local-ipv4` },
  packetpublic: { url: `${PACKET}/public-ipv4` },
  ipify: { url: 'https://api.ipify.org' },
}

const ASK_MS = 10_000

async function addressFor(host: Host, text: string): Promise<string> {
  const source = ADDRESS_SOURCES[text]
  if (source === undefined) return text
  const found = (await host.web.get(source.url, source.headers ?? {}, ASK_MS)).trim()
  if (found === '') throw new ProgramError(`${text} gave no address`)
  return found
}

/** The document of the header `X-API-Tunnel-Params`. */
export async function nodeParameters(host: Host, settings: AgentSettings): Promise<object> {
  const adapters = await host.network.adapters()
  const outward = adapters.find(({ gateway }) => gateway !== undefined)?.address ?? ''
  return {
    node: {
      customConfig: {
        address: await addressFor(host, settings.address),
        internalAddress: (await addressFor(host, settings.internalAddress)) || outward,
        roles: settings.roles,
        label: settings.labels,
        taints: settings.taints,
      },
      etcd: settings.roles.includes('etcd'),
      controlPlane: settings.roles.includes('controlplane'),
      worker: settings.roles.includes('worker'),
      requestedHostname: settings.nodeName.toLowerCase(),
    },
  }
}
