/**
 * An encrypted connection to an LDAP server for the package `ldapts`. It always uses TLS and never reconnects, so
 * that no password is sent in clear text.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

import type { Clock } from '#lib/clock.ts'

import { ProviderError } from '../provider-error.ts'
import { startTls } from './start-tls.ts'

export interface LdapEntry {
  readonly dn: string
  /** By attribute in lower case. Bytes that are no text are in hex. */
  readonly attributes: Readonly<Record<string, readonly string[]>>
}

export interface LdapSearch {
  readonly base: string
  readonly filter: string
  readonly attributes: readonly string[]
  /** More are an error. */
  readonly maxEntries: number
}

export interface LdapConnection {
  /** False for a wrong name or password. Throws ProviderError. */
  bind(dn: string, password: string): Promise<boolean>
  /** Follows no referrals. Throws ProviderError. */
  search(search: LdapSearch): Promise<readonly LdapEntry[]>
  close(): void
}

export interface LdapAddress {
  readonly url: string
  /** PEM; undefined: the public authorities. */
  readonly certificateAuthority: string | undefined
}

export type OpenLdap = (address: LdapAddress) => Promise<LdapConnection>

/** For all requests of one log-in. */
const TIMEOUT_MS = 10_000
const MAX_BYTES = 8 << 20

/** The parts of the package that are used. It has no types here, so that the program is built without it. */
interface LdaptsClient {
  bind(dn: string, password: string): Promise<void>
  search(
    base: string,
    options: object,
  ): Promise<{ readonly searchEntries: readonly Readonly<Record<string, unknown>>[] }>
}

interface Ldapts {
  readonly Client: new (options: { readonly url: string; readonly createConnection: () => Socket }) => LdaptsClient
}

/** Throws ProviderError: the server cannot be reached, its certificate is not trusted, or `ldapts` is not installed. */
export async function openLdap(clock: Clock, address: LdapAddress): Promise<LdapConnection> {
  const { Client } = await loadLdapts()
  const socket = await openSocket(clock, address)
  const deadline = clock.after(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)))
  let isTaken = false
  let bytes = 0
  const createConnection = (): Socket => {
    // The package would connect anew by itself, without TLS.
    if (isTaken || socket.destroyed) throw new ProviderError('The connection has ended')
    isTaken = true
    socket.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > MAX_BYTES) socket.destroy(new Error('the answer is too large'))
    })
    return socket
  }
  const client = new Client({ url: 'ldap://server.invalid', createConnection })
  return {
    bind: (dn, password) => bind(client, dn, password),
    search: (search) => searchIn(client, search),
    close() {
      deadline.cancel()
      socket.destroy()
    },
  }
}

async function loadLdapts(): Promise<Ldapts> {
  const name: string = 'ldapts'
  try {
    return (await import(name)) as Ldapts
  } catch (cause) {
    throw new ProviderError('The package "ldapts" is not installed', { cause })
  }
}

const LDAPS_PORT = 636
const LDAP_PORT = 389

async function openSocket(clock: Clock, { url, certificateAuthority: ca }: LdapAddress): Promise<TLSSocket> {
  const { protocol, hostname, port } = new URL(url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const isTls = protocol === 'ldaps:'
  const plain = connectTcp({ host, port: port === '' ? (isTls ? LDAPS_PORT : LDAP_PORT) : Number(port) })
  const timer = clock.after(TIMEOUT_MS, () => plain.destroy(new Error(`no connection within ${TIMEOUT_MS / 1000} s`)))
  try {
    await event(plain, 'connect')
    if (!isTls) await startTls(plain)
    const name = isIP(host) === 0 ? { servername: host } : {}
    const socket = connectTls({ socket: plain, host, ...name, ...(ca !== undefined && ca !== '' && { ca }) })
    await event(socket, 'secureConnect')
    // Requests that are under way fail when the connection closes.
    socket.on('error', () => undefined)
    return socket
  } catch (cause) {
    plain.destroy()
    throw failed(`connect to "${url}"`, cause)
  } finally {
    timer.cancel()
  }
}

function event(socket: Socket, name: 'connect' | 'secureConnect'): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once(name, resolve)
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('the connection was closed')))
  return promise.finally(() => socket.removeListener('error', reject))
}

/** Result codes of a log-in that the server refuses: wrong credentials, a locked account, an expired password. */
const REFUSED: ReadonlySet<unknown> = new Set([19, 32, 34, 48, 49, 50, 53])

async function bind(client: LdaptsClient, dn: string, password: string): Promise<boolean> {
  try {
    await client.bind(dn, password)
    return true
  } catch (cause) {
    if (REFUSED.has(codeOf(cause))) return false
    throw failed('bind', cause)
  }
}

async function searchIn(client: LdaptsClient, search: LdapSearch): Promise<readonly LdapEntry[]> {
  const { base, filter, attributes, maxEntries } = search
  const names = [...new Set(attributes)]
  const options = {
    filter,
    scope: 'sub',
    derefAliases: 'never',
    attributes: names,
    explicitBufferAttributes: names,
    sizeLimit: maxEntries + 1,
    timeLimit: TIMEOUT_MS / 1000,
  }
  try {
    const { searchEntries } = await client.search(base, options)
    if (searchEntries.length > maxEntries) throw new ProviderError(`The search has more than ${maxEntries} results`)
    return searchEntries.map((entry) => entryOf(entry))
  } catch (cause) {
    throw failed('search', cause)
  }
}

function entryOf({ dn, ...attributes }: Readonly<Record<string, unknown>>): LdapEntry {
  const values = Object.entries(attributes).map(([name, value]) => [
    name.toLowerCase(),
    [value].flat().map((one) => (Buffer.isBuffer(one) ? textOf(one) : String(one))),
  ])
  return { dn: String(dn), attributes: Object.fromEntries(values) as LdapEntry['attributes'] }
}

/** Active Directory identifies accounts by 16 bytes. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  // eslint-disable-next-line no-control-regex
  return Buffer.from(text).equals(bytes) && !/[\u0000-\u001f]/.test(text) ? text : bytes.toString('hex')
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code
}

function failed(what: string, cause: unknown): ProviderError {
  if (cause instanceof ProviderError) return cause
  return new ProviderError(`Failed to ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
}
