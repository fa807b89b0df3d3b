/**
 * Parses the parameters of Rancher's cluster agent: address and CA of the API server, and the token of its service
 * account. Our own agent sends none of them.
 */
import { badRequestError } from '#meta/status-errors.ts'

export interface ApiCredential {
  /** Host and port of the API server, as the agent reaches it. */
  readonly address: string
  /** Of the agent's service account. */
  readonly token: string
  /** PEM; empty: the public authorities. */
  readonly certificateAuthority: string
}

const ADDRESS = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]):([1-9]\d{0,4})$/i
const MAX_TOKEN = 16 << 10
const MAX_CA_BYTES = 64 << 10

/** Undefined: the agent is ours. Throws StatusError for parameters that are neither. */
export function apiCredentialOf({ cluster }: Readonly<Record<string, unknown>>): ApiCredential | undefined {
  if (cluster === undefined) return undefined
  if (typeof cluster !== 'object' || cluster === null) throw invalid('cluster')
  const { address, token, caCert = '' } = cluster as Readonly<Record<string, unknown>>
  if (!isAddress(address)) throw invalid('cluster.address')
  // A token ends up in a header.
  const isToken = typeof token === 'string' && token.length <= MAX_TOKEN && /^[\x21-\x7e]+$/.test(token)
  if (!isToken) throw invalid('cluster.token')
  return { address, token, certificateAuthority: authorityIn(caCert) }
}

function isAddress(value: unknown): value is string {
  const [, port = ''] = typeof value === 'string' ? (ADDRESS.exec(value) ?? []) : []
  return port !== '' && Number(port) <= 65_535
}

function authorityIn(caCert: unknown): string {
  if (typeof caCert !== 'string' || caCert.length > MAX_CA_BYTES) throw invalid('cluster.caCert')
  const text = Buffer.from(caCert, 'base64').toString()
  if (caCert !== '' && !text.includes('-----BEGIN CERTIFICATE-----')) throw invalid('cluster.caCert')
  return text
}

function invalid(field: string): Error {
  return badRequestError(`the parameter ${field} of the agent is not valid`)
}
