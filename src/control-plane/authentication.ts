/** Builds authentication from the flags: CAs, keys and tokens from files, which are reloaded when they change. */
import type { AuthenticationConfig } from '#apiserver/bootstrap/authentication-config.ts'
import type { AuthenticatorSettings, JwtIssuer, LiveIssuers } from '#auth/authenticators/index.ts'
import { findRequestHeaderRisk } from '#auth/authenticators/request-header.ts'
import { createStaticTokenAuthenticator } from '#auth/authenticators/static-token.ts'
import { createJsonFetcher } from '#auth/credentials/provider-keys.ts'
import type { LiveFiles } from '#component/live-files.ts'
import { goQuote } from '#lib/go/text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { type VerifyingKey, verifyingKey } from '#lib/jwt/key.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { type Certificate, parseBundle } from '#lib/x509/certificate.ts'
import { parsePublicKeys } from '#lib/x509/key.ts'
import { fileErrorText } from '#meta/config-kind.ts'

import {
  type AuthenticationSettings,
  InvalidAuthentication,
  jwtIssuers,
  parseAuthenticationConfig,
} from './config/authentication-config.ts'
import type { Environment } from './environment.ts'
import type { Settings } from './flags/flags.ts'
import { createReviewClient } from './review-client.ts'

type Authentication = Omit<AuthenticatorSettings, 'clock' | 'objects' | 'apiAudiences'>
type Tools = Pick<Environment, 'clock' | 'readFile' | 'files'>

export interface LoadedAuthentication {
  readonly authentication: Authentication
  /** The current settings for aggregated servers. */
  readonly published: () => AuthenticationConfig
  /** PEM of all current authorities of client certificates, sent in the handshake. */
  readonly clientAuthorities: () => readonly string[]
  /** The keys that verify ServiceAccount tokens. */
  readonly tokenKeys: () => readonly VerifyingKey[]
  /** The anonymous settings of `--authentication-config`, if any. */
  readonly anonymous: AuthenticationSettings['anonymous']
}

/** Throws ProgramError for unusable files. */
export async function loadAuthentication(tools: Environment): Promise<LoadedAuthentication> {
  const { files, readFile, settings: flags, isEnabled } = tools
  const clients = await openAuthorities(tools, flags['client-ca-file'])
  const proxies = await openAuthorities(tools, flags['requestheader-client-ca-file'])
  const headers = {
    allowedNames: flags['requestheader-allowed-names'],
    usernameHeaders: flags['requestheader-username-headers'],
    uidHeaders: isEnabled('RemoteRequestHeaderUID') ? flags['requestheader-uid-headers'] : [],
    groupHeaders: flags['requestheader-group-headers'],
    extraHeaderPrefixes: flags['requestheader-extra-headers-prefix'],
  }
  const { allowedNames } = headers
  const risk = findRequestHeaderRisk(proxies?.().certificates ?? [], clients?.().certificates ?? [], allowedNames)
  if (risk !== undefined) throw new ProgramError(risk)
  const tokenKeys = await openTokenKeys(flags, files)
  const tokenFile = flags['token-auth-file']
  const readsUid = isEnabled('AllowParsingUserUIDFromCertAuth')
  const configured = await loadConfigured(flags, tools)
  return {
    anonymous: configured?.anonymous,
    authentication: {
      ...(configured !== undefined && { jwt: configured.issuers }),
      ...(proxies !== undefined && {
        requestHeader: {
          ...headers,
          authorities: () => proxies().certificates,
        },
      }),
      ...(clients !== undefined && { clientCert: { authorities: () => clients().certificates, readsUid } }),
      ...(tokenFile !== '' && { staticTokens: await readTokens(tokenFile, readFile) }),
      serviceAccounts: {
        issuers: flags['service-account-issuer'],
        keys: tokenKeys,
        lookup: flags['service-account-lookup'],
      },
      bootstrapTokens: flags['enable-bootstrap-token-auth'],
      ...(await loadOidc(flags, tools)),
      ...(await loadWebhook(flags, tools)),
    },
    published: () => ({
      clientAuthorities: clients?.().pem ?? '',
      ...(proxies !== undefined && { requestHeader: { ...headers, authorities: proxies().pem } }),
    }),
    clientAuthorities: () => [clients, proxies].flatMap((open) => (open === undefined ? [] : [open().pem])),
    tokenKeys,
  }
}

/** The validated text. */
async function readTokens(file: string, readFile: ProgramContext['readFile']): Promise<string> {
  const text = await readFile(file).catch(unreadable(file))
  try {
    createStaticTokenAuthenticator(text, { apiAudiences: [] })
    return text
  } catch (cause) {
    throw new ProgramError(`--token-auth-file: ${(cause as Error).message}`, { cause })
  }
}

interface Authorities {
  readonly pem: string
  readonly certificates: readonly Certificate[]
}

function openAuthorities({ files }: Tools, file: string): Promise<(() => Authorities) | undefined> {
  if (file === '') return Promise.resolve(undefined)
  return files.open([file], readAuthorities)
}

function readAuthorities([pem = '']: readonly string[]): Authorities {
  const certificates = parseBundle(pem)
  if (certificates.length === 0) throw new Error('there is no certificate in it')
  return { pem, certificates }
}

/** Without key files, the signing key verifies tokens. */
function openTokenKeys(flags: Settings, files: LiveFiles): Promise<() => readonly VerifyingKey[]> {
  const given = flags['service-account-key-file']
  const paths = given.length === 0 ? [flags['service-account-signing-key-file']] : given
  return files.open(paths, (texts) => texts.flatMap(parsePublicKeys).map((key) => verifyingKey(key)))
}

/** The settings of `--authentication-config`, reloaded on change. Throws ProgramError with upstream's texts. */
async function loadConfigured(
  flags: Settings,
  { clock, files, readFile }: Tools,
): Promise<{ readonly issuers: LiveIssuers; readonly anonymous: AuthenticationSettings['anonymous'] } | undefined> {
  const file = flags['authentication-config']
  if (file === '') return undefined
  const parse = (source: string): AuthenticationSettings =>
    parseAuthenticationConfig(source, flags['service-account-issuer'])
  let first: AuthenticationSettings
  try {
    first = parse(await readFile(file))
  } catch (cause) {
    const message = fileErrorText(file, cause as Error)
    if (cause instanceof InvalidAuthentication) throw new ProgramError(message, { cause })
    throw new ProgramError(`failed to load authentication configuration from file ${goQuote(file)}: ${message}`, {
      cause,
    })
  }
  let apply: (next: readonly JwtIssuer[]) => void = () => undefined
  const { anonymous } = first
  await files.open(
    [file],
    ([source = '']) => parse(source),
    (next) => {
      if (JSON.stringify(next.anonymous) !== JSON.stringify(anonymous)) {
        throw new Error('anonymous: Forbidden: changed from initial configuration file')
      }
      apply(jwtIssuers(next, clock))
    },
  )
  const follow = (listener: typeof apply): void => {
    apply = listener
  }
  return { issuers: { first: jwtIssuers(first, clock), follow }, anonymous }
}

async function loadOidc(flags: Settings, { clock, readFile }: Tools): Promise<Pick<Authentication, 'oidc'>> {
  const issuerUrl = flags['oidc-issuer-url']
  if (issuerUrl === '') return {}
  const file = flags['oidc-ca-file']
  const ca = file === '' ? undefined : await readFile(file).catch(unreadable(file))
  const client = createHttpClient({ clock, ...(ca !== undefined && { tls: { ca } }) })
  const usernamePrefix = flags['oidc-username-prefix']
  const groupsClaim = flags['oidc-groups-claim']
  return {
    oidc: {
      fetchJson: createJsonFetcher(client),
      issuerUrl,
      clientId: flags['oidc-client-id'],
      usernameClaim: flags['oidc-username-claim'],
      ...(usernamePrefix !== '' && { usernamePrefix }),
      ...(groupsClaim !== '' && { groupsClaim }),
      groupsPrefix: flags['oidc-groups-prefix'],
      requiredClaims: Object.fromEntries(flags['oidc-required-claim']),
      signingAlgs: flags['oidc-signing-algs'],
    },
  }
}

async function loadWebhook(flags: Settings, tools: Tools): Promise<Pick<Authentication, 'webhook'>> {
  const file = flags['authentication-token-webhook-config-file']
  if (file === '') return {}
  return {
    webhook: {
      send: await createReviewClient(file, tools),
      version: flags['authentication-token-webhook-version'],
      ttlMs: flags['authentication-token-webhook-cache-ttl'],
    },
  }
}

function unreadable(file: string): (cause: unknown) => never {
  return (cause) => {
    throw new ProgramError(`Cannot read "${file}": ${(cause as Error).message}`, { cause })
  }
}
