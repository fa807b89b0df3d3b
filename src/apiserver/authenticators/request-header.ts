/**
 * Request headers: a proxy in front of us has found out who the user is and says so, and we believe it because of its own
 * certificate. From anybody else these headers mean nothing.
 */
import type { Exchange } from '#lib/http/exchange.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import { extrasByPrefix, headerTexts } from '../credentials/header-text.ts'
import { createPeerVerifier, type PeerVerifierOptions } from '../credentials/peer-certificate.ts'
import { CredentialError, type RequestAuthenticator } from './authenticator.ts'

export interface RequestHeaderOptions extends PeerVerifierOptions {
  /** Common names of the proxies; none: every certificate of the authorities will do. */
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

/** Takes these headers from a request. Undefined when there are none but the usual ones, which are never passed on. */
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
 * What makes these settings dangerous, if anything: whoever gets a client certificate could be anybody. A server should
 * not start with them.
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
