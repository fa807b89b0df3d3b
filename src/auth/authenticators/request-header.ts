/**
 * Authenticates requests of a front proxy, which names the user in headers. The headers count only if the proxy's
 * client certificate is valid.
 */
import type { Exchange } from '#lib/http/exchange.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import { CredentialError, type RequestAuthenticator } from '../authenticator.ts'
import { extrasByPrefix, headerTexts } from '../credentials/header-text.ts'
import { createPeerVerifier, type PeerVerifierOptions } from '../credentials/peer-certificate.ts'

export interface RequestHeaderOptions extends PeerVerifierOptions {
  /** The allowed common names of the proxies. An empty list allows every certificate of the authorities. */
  readonly allowedNames: readonly string[]
  readonly usernameHeaders: readonly string[]
  readonly uidHeaders?: readonly string[]
  readonly groupHeaders?: readonly string[]
  readonly extraHeaderPrefixes?: readonly string[]
}

export function createRequestHeaderAuthenticator(options: RequestHeaderOptions): RequestAuthenticator {
  const verify = createPeerVerifier(options)
  const [names, uids] = [lower(options.usernameHeaders), lower(options.uidHeaders)]
  const [groups, prefixes] = [lower(options.groupHeaders), lower(options.extraHeaderPrefixes)]
  return (exchange) => {
    const certificate = verify(exchange.peer)
    if (certificate === undefined) return undefined
    checkName(certificate, options.allowedNames)
    const firstOf = (wanted: readonly string[]): string =>
      wanted.map((name) => headerTexts(exchange, name)[0] ?? '').find((text) => text !== '') ?? ''
    const name = firstOf(names)
    if (name === '') return undefined
    const named = groups.flatMap((header) => headerTexts(exchange, header)).filter((text) => text !== '')
    return { name, uid: firstOf(uids), groups: named, extra: extrasByPrefix(exchange, prefixes) }
  }
}

const lower = (names: readonly string[] = []): string[] => names.map((name) => name.toLowerCase())

type HeaderNames = Pick<RequestHeaderOptions, 'usernameHeaders' | 'uidHeaders' | 'groupHeaders' | 'extraHeaderPrefixes'>

/**
 * Removes these headers from a request. Undefined if only the default headers are configured, which are never passed
 * on.
 */
export function hiderOf(options: HeaderNames): ((exchange: Exchange) => void) | undefined {
  const isUnusual = (name: string): boolean => !name.startsWith('x-remote-')
  const all = [options.usernameHeaders, options.uidHeaders, options.groupHeaders].flatMap(lower)
  const names = new Set(all.filter(isUnusual))
  const prefixes = lower(options.extraHeaderPrefixes).filter(isUnusual)
  if (names.size === 0 && prefixes.length === 0) return undefined
  return ({ headers }) => {
    for (const name of Object.keys(headers)) {
      if (names.has(name) || prefixes.some((prefix) => name.startsWith(prefix))) delete headers[name]
    }
  }
}

function checkName({ subject }: Certificate, allowedNames: readonly string[]): void {
  if (allowedNames.length === 0 || allowedNames.includes(subject.commonName)) return
  throw new CredentialError(`x509: subject with cn=${subject.commonName} is not in the allowed list`)
}

/**
 * The reason why these settings are dangerous, if they are: any holder of a client certificate could impersonate
 * any user. A server should refuse to start with them.
 */
export function findRequestHeaderRisk(
  proxies: readonly Certificate[],
  clients: readonly Certificate[],
  allowedNames: readonly string[],
): string | undefined {
  const isShared = proxies.some((proxy) => clients.some((client) => client.der.equals(proxy.der)))
  if (!isShared || allowedNames.length > 0) return undefined
  return 'The authority of "--requestheader-client-ca-file" also signs clients: name the proxies in "--requestheader-allowed-names"'
}
